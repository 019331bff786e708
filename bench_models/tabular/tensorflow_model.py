"""The perceptron as a TensorFlow module; matrices are (in, out)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.models.arrays import Arrays


class Perceptron(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = {
            name: tf.Variable(tf.cast(np.ascontiguousarray(array.T), dtype)) for name, array in weights.items()
        }

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        def linear(name: str, hidden: Any) -> Any:
            weights = self.variables_by_name
            return tf.linalg.matmul(hidden, weights[f"{name}.weight"]) + weights[f"{name}.bias"]

        hidden = tf.nn.relu(linear("first", inputs["features"]))
        return (linear("third", tf.nn.relu(linear("second", hidden))),)


def build(weights: Arrays, dtype: Any) -> Perceptron:
    return Perceptron(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array.T
