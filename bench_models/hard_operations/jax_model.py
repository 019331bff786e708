"""The operations as pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from fairlap.bench_models.hard_operations import EPSILON
from fairlap.models.arrays import Arrays
from fairlap.models.operations.hard import Hard


def _attention(query: Any, key: Any, value: Any) -> Any:
    """JAX takes positions before heads, of which there is one."""
    turned = [jnp.swapaxes(each, 1, 2) for each in (query, key, value)]
    return jnp.swapaxes(jax.nn.dot_product_attention(*turned), 1, 2)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": lambda numbers: jnp.sum(numbers, -1),
    "dot": jnp.vecdot,
    "matmul": lambda a, b: a @ b.T,
    "solve": jnp.linalg.solve,
    "softmax": jax.nn.softmax,
    "logsumexp": lambda numbers: jax.nn.logsumexp(numbers, -1),
    "layernorm": lambda numbers: jax.nn.standardize(numbers, epsilon=EPSILON),
    "variance": lambda numbers: jnp.var(numbers, -1),
    "attention": _attention,
    "subnormal": lambda numbers: numbers * 0.5,
    "special-max": lambda numbers: jnp.max(numbers, -1),
    "special-softmax": jax.nn.softmax,
    "special-sort": jnp.sort,
}


class Implementation:
    def __init__(self, operation: Hard) -> None:
        self._function = _FUNCTIONS[operation.function]
        self._names = [tensor.name for tensor in operation.inputs]

    def params(self, weights: Arrays) -> dict[str, Any]:
        return dict(weights)

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
        return (self._function(*params.values(), *(inputs[name] for name in self._names)),)
