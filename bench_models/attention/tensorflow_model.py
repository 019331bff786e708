"""Attention as a TensorFlow module."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from fairlap.bench_models.attention.spec import SCALE
from fairlap.models.arrays import Arrays


class Attention(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        key, value = self.variables_by_name["key"], self.variables_by_name["value"]
        scores = tf.linalg.matmul(inputs["query"], key, transpose_b=True) * SCALE
        return (tf.linalg.matmul(tf.nn.softmax(scores, axis=-1), value),)


def build(weights: Arrays, dtype: Any) -> Attention:
    return Attention(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array
