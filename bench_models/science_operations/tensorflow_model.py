"""The operations as TensorFlow modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.models.arrays import Arrays
from fairlap.models.operations.science import Fourier, RandomNormal, RandomUniform, Science, SegmentSum, SparseProduct

_TRANSFORMS = (tf.signal.rfft, tf.signal.rfft2d, tf.signal.rfft3d)  # along the last one, two and three axes


def _svd(inputs: dict[str, Any]) -> tuple[Any, ...]:
    values, left, right = tf.linalg.svd(inputs["a"])
    return left, values, tf.linalg.matrix_transpose(right)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "solve": lambda inputs: (tf.linalg.solve(inputs["a"], inputs["b"]),),
    "qr": lambda inputs: tuple(tf.linalg.qr(inputs["a"])),
    "svd": _svd,
    "eigh": lambda inputs: tuple(tf.linalg.eigh(inputs["a"])),
    "cholesky": lambda inputs: (tf.linalg.cholesky(inputs["a"]),),
    "sort": lambda inputs: (tf.sort(inputs["numbers"], -1),),
}


class Computed(tf.Module):
    def __init__(self, operation: Science, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.operation = operation
        self.variables_by_name = {name: tf.Variable(tf.cast(array, dtype)) for name, array in weights.items()}
        if isinstance(operation, SparseProduct):
            columns = operation.columns.reshape(-1)
            rows = np.repeat(np.arange(operation.n), operation.nonzeros)
            self.places = tf.constant(np.stack((rows, columns), -1).astype(np.int64))

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any, ...]:
        match self.operation:
            case SparseProduct(n):
                matrix = tf.SparseTensor(self.places, self.variables_by_name["values"], (n, n))
                return (tf.sparse.sparse_dense_matmul(matrix, inputs["x"][:, None])[:, 0],)
            case Fourier() as transform:
                found = _TRANSFORMS[len(transform.shape) - 1](inputs["signal"])
                return tf.math.real(found), tf.math.imag(found)
            case RandomUniform(n):
                return (tf.random.stateless_uniform((n,), inputs["seed"]),)
            case RandomNormal(n):
                return (tf.random.stateless_normal((n,), inputs["seed"]),)
            case SegmentSum(segments=count):
                return (tf.math.unsorted_segment_sum(inputs["data"], inputs["segments"], count),)
            case operation:
                found = _FUNCTIONS[operation.function](inputs)
                return tuple(found)


class Implementation:
    def __init__(self, operation: Science) -> None:
        self._operation = operation

    def build(self, weights: Arrays, dtype: Any) -> Any:
        return Computed(self._operation, weights, dtype)

    def canonical(self, _name: str, array: Any) -> Any:
        return array
