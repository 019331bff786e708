"""The operations as pure functions. Images are NHWC inside and the kernel HWIO, as XLA prefers on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.attention.spec import SCALE
from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.bench_models.triad.spec import SCALE as TRIAD_SCALE
from fairlap.models.arrays import Arrays


def attention(params: dict[str, Any], inputs: dict[str, Any]) -> Any:
    """Scores and their softmax stay in float32 whatever goes in, as in JAX's own attention."""
    # Products of stacks of matrices, not sums over named axes: with those XLA turns the queries around, as all items
    # share one memory, and takes 2.8 ms instead of 1.7 ms on a CPU core. Spelling out the memory for every item is as
    # fast, but JAX 0.10.2 then gives wrong answers for two items and more.
    key, value = params["key"], params["value"]
    scores = jnp.matmul(inputs["query"], key.swapaxes(-1, -2), preferred_element_type=jnp.float32) * SCALE
    return jnp.matmul(jax.nn.softmax(scores, axis=-1).astype(value.dtype), value)


def conv2d(params: dict[str, Any], inputs: dict[str, Any]) -> Any:
    convolved = jax.lax.conv_general_dilated(
        jnp.transpose(inputs["image"], (0, 2, 3, 1)),
        params["kernel"],
        window_strides=(1, 1),
        padding=((PADDING, PADDING), (PADDING, PADDING)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return jnp.transpose(convolved, (0, 3, 1, 2))


def layernorm(params: dict[str, Any], inputs: dict[str, Any]) -> Any:
    return jax.nn.standardize(inputs["hidden"], epsilon=EPSILON) * params["norm.weight"] + params["norm.bias"]


_OPERATIONS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "attention": attention,
    "conv2d": conv2d,
    "empty": lambda params, inputs: inputs["some"] + 1,
    "gemm": lambda params, inputs: jnp.matmul(inputs["left"], params["right"]),
    "layernorm": layernorm,
    "softmax": lambda params, inputs: jax.nn.softmax(inputs["scores"], axis=-1),
    "triad": lambda params, inputs: inputs["left"] + TRIAD_SCALE * inputs["right"],
}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._compute = _OPERATIONS[spec.SPEC.name]

    def params(self, weights: Arrays) -> dict[str, Any]:
        return {name: np.ascontiguousarray(_turned(name, array, (2, 3, 1, 0))) for name, array in weights.items()}

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        return {name: _turned(name, array, (3, 2, 0, 1)) for name, array in params.items()}

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
        return (self._compute(params, inputs),)


def _turned(name: str, array: Any, axes: tuple[int, ...]) -> Any:
    return array.transpose(axes) if name == "kernel" else array
