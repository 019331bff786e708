"""The operations as TensorFlow modules. Images are NHWC inside: TensorFlow has no other layout on a CPU."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.bench_models.attention.spec import SCALE
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.bench_models.triad.spec import SCALE as TRIAD_SCALE
from fairlap.models.arrays import Arrays


class OnWeights(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        turned = {name: np.ascontiguousarray(_turned(name, array, (2, 3, 1, 0))) for name, array in weights.items()}
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in turned.items()}


class Attention(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        key, value = self.variables_by_name["key"], self.variables_by_name["value"]
        scores = tf.linalg.matmul(inputs["query"], key, transpose_b=True) * SCALE
        return (tf.linalg.matmul(tf.nn.softmax(scores, axis=-1), value),)


class Conv2d(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        image = tf.transpose(inputs["image"], (0, 2, 3, 1))
        # "SAME" is one pixel on every side here, since the kernel is odd and the stride is one.
        convolved = tf.nn.conv2d(image, self.variables_by_name["kernel"], 1, "SAME")
        return (tf.transpose(convolved, (0, 3, 1, 2)),)


class Empty(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (inputs["some"] + 1,)


class Gemm(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (tf.linalg.matmul(inputs["left"], self.variables_by_name["right"]),)


class LayerNorm(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        shift, scale = self.variables_by_name["norm.bias"], self.variables_by_name["norm.weight"]
        mean, variance = tf.nn.moments(inputs["hidden"], axes=[-1], keepdims=True)
        return (tf.nn.batch_normalization(inputs["hidden"], mean, variance, shift, scale, EPSILON),)


class Softmax(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (tf.nn.softmax(inputs["scores"], axis=-1),)


class Triad(OnWeights):
    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (inputs["left"] + TRIAD_SCALE * inputs["right"],)


_OPERATIONS = {each.__name__.lower(): each for each in (Attention, Conv2d, Empty, Gemm, LayerNorm, Softmax, Triad)}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._operation = _OPERATIONS[spec.SPEC.name]

    def build(self, weights: Arrays, dtype: Any) -> Any:
        return self._operation(weights, dtype)

    def canonical(self, name: str, array: Any) -> Any:
        return _turned(name, array, (3, 2, 0, 1))


def _turned(name: str, array: Any, axes: tuple[int, ...]) -> Any:
    return array.transpose(axes) if name == "kernel" else array
