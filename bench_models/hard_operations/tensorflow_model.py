"""The operations as TensorFlow modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from fairlap.bench_models.hard_operations import EPSILON
from fairlap.models.arrays import Arrays
from fairlap.models.operations.hard import Hard


def _layernorm(numbers: Any) -> Any:
    mean, variance = tf.nn.moments(numbers, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(numbers, mean, variance, None, None, EPSILON)


def _attention(query: Any, key: Any, value: Any) -> Any:
    scale = tf.constant(query.shape[-1] ** -0.5, query.dtype)
    shares = tf.nn.softmax(tf.linalg.matmul(query * scale, key, transpose_b=True), axis=-1)
    return tf.linalg.matmul(shares, value)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": lambda numbers: tf.reduce_sum(numbers, -1),
    "dot": lambda a, b: tf.einsum("rn,rn->r", a, b),
    "matmul": lambda a, b: tf.linalg.matmul(a, b, transpose_b=True),
    "solve": tf.linalg.solve,
    "softmax": tf.nn.softmax,
    "logsumexp": lambda numbers: tf.reduce_logsumexp(numbers, -1),
    "layernorm": _layernorm,
    "variance": lambda numbers: tf.math.reduce_variance(numbers, -1),
    "attention": _attention,
    "subnormal": lambda numbers: numbers * tf.constant(0.5, numbers.dtype),
    "special-max": lambda numbers: tf.reduce_max(numbers, -1),
    "special-softmax": tf.nn.softmax,
    "special-sort": tf.sort,
}


class Computed(tf.Module):
    def __init__(self, operation: Hard, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.function = _FUNCTIONS[operation.function]
        self.names = [tensor.name for tensor in operation.inputs]
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (self.function(*self.variables_by_name.values(), *(inputs[name] for name in self.names)),)


class Implementation:
    def __init__(self, operation: Hard) -> None:
        self._operation = operation

    def build(self, weights: Arrays, dtype: Any) -> Any:
        return Computed(self._operation, weights, dtype)

    def canonical(self, _name: str, array: Any) -> Any:
        return array
