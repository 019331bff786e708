"""The product as a TensorFlow module."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from fairlap.models.arrays import Arrays


class Product(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (tf.linalg.matmul(inputs["left"], self.variables_by_name["right"]),)


def build(weights: Arrays, dtype: Any) -> Product:
    return Product(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array
