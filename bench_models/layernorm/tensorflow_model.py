"""Layer normalisation as a TensorFlow module."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.models.arrays import Arrays


class LayerNorm(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        shift, scale = self.variables_by_name["norm.bias"], self.variables_by_name["norm.weight"]
        mean, variance = tf.nn.moments(inputs["hidden"], axes=[-1], keepdims=True)
        return (tf.nn.batch_normalization(inputs["hidden"], mean, variance, shift, scale, EPSILON),)


def build(weights: Arrays, dtype: Any) -> LayerNorm:
    return LayerNorm(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array
