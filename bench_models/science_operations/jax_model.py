"""The operations as pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.operations.science import Fourier, RandomNormal, RandomUniform, Science, SegmentSum, SparseProduct
from jax.experimental import sparse

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "solve": lambda inputs: (jnp.linalg.solve(inputs["a"], inputs["b"]),),
    "qr": lambda inputs: tuple(jnp.linalg.qr(inputs["a"])),
    "svd": lambda inputs: tuple(jnp.linalg.svd(inputs["a"], full_matrices=False)),
    "eigh": lambda inputs: tuple(jnp.linalg.eigh(inputs["a"])),
    "cholesky": lambda inputs: (jnp.linalg.cholesky(inputs["a"]),),
    "sort": lambda inputs: (jnp.sort(inputs["numbers"], -1),),
}


class Implementation:
    def __init__(self, operation: Science) -> None:
        self._operation = operation
        if isinstance(operation, SparseProduct):
            self._columns = operation.columns.reshape(-1)
            self._rows = np.arange(0, operation.n * operation.nonzeros + 1, operation.nonzeros, dtype=np.int32)

    def params(self, weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any, ...]:
        match self._operation:
            case SparseProduct(n):
                matrix = sparse.BCSR((params["values"], self._columns, self._rows), shape=(n, n))
                return (matrix @ inputs["x"],)
            case Fourier() as transform:
                found = jnp.fft.rfftn(inputs["signal"], axes=tuple(range(1, 1 + len(transform.shape))))
                return found.real, found.imag
            case RandomUniform(n):
                return (jax.random.uniform(_key(inputs), (n,)),)
            case RandomNormal(n):
                return (jax.random.normal(_key(inputs), (n,)),)
            case SegmentSum(segments=count):
                return (jax.ops.segment_sum(inputs["data"], inputs["segments"], count),)
            case operation:
                found = _FUNCTIONS[operation.function](inputs)
                return tuple(found)


def _key(inputs: dict[str, Any]) -> Any:
    return jax.random.wrap_key_data(inputs["seed"].astype(jnp.uint32))
