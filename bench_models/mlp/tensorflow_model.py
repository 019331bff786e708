"""The perceptron as a TensorFlow module; matrices are (in, out)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.bench_models.mlp.spec import EPSILON
from fairlap.models.arrays import Arrays


class Perceptron(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = {
            name: tf.Variable(tf.cast(np.ascontiguousarray(array.T), dtype)) for name, array in weights.items()
        }

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        weights = self.variables_by_name

        def linear(name: str, hidden: Any) -> Any:
            return tf.linalg.matmul(hidden, weights[f"{name}.weight"]) + weights[f"{name}.bias"]

        hidden = tf.nn.gelu(linear("first", inputs["image"]), approximate=False)
        mean, variance = tf.nn.moments(hidden, axes=[-1], keepdims=True)
        hidden = tf.nn.batch_normalization(
            hidden, mean, variance, weights["norm.bias"], weights["norm.weight"], EPSILON
        )
        return (linear("third", tf.nn.gelu(linear("second", hidden), approximate=False)),)


def build(weights: Arrays, dtype: Any) -> Perceptron:
    return Perceptron(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array.T
