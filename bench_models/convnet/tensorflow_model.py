"""The net as a TensorFlow module, NHWC inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.bench_models.convnet.spec import STRIDES
from fairlap.models.arrays import Arrays
from fairlap.models.tensorflow_edges import with_edges

_EDGES = ((0, 0), (1, 1), (1, 1), (0, 0))  # TensorFlow's own "SAME" pads a stride of two on one side only


class ConvNet(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = {
            name: tf.Variable(tf.cast(np.ascontiguousarray(_turned(name, array, (2, 3, 1, 0))), dtype))
            for name, array in weights.items()
        }

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        weights = self.variables_by_name
        hidden = tf.transpose(inputs["image"], (0, 2, 3, 1))
        for number, stride in enumerate(STRIDES):
            hidden, padding = with_edges(hidden, _EDGES)
            hidden = tf.nn.conv2d(hidden, weights[f"conv{number}.weight"], stride, padding)
            hidden = tf.nn.relu(tf.nn.bias_add(hidden, weights[f"conv{number}.bias"]))
        pooled = tf.reduce_mean(hidden, axis=(1, 2))
        return (tf.linalg.matmul(pooled, weights["head.weight"]) + weights["head.bias"],)


def build(weights: Arrays, dtype: Any) -> ConvNet:
    return ConvNet(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return _turned(name, array, (3, 2, 0, 1))


def _turned(name: str, array: Any, axes: tuple[int, ...]) -> Any:
    if array.ndim == 4:
        return array.transpose(axes)
    return array.T if name == "head.weight" else array
