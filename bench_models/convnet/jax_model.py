"""The net as a pure function. Images are NHWC inside and kernels HWIO, as XLA prefers on a CPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.convnet.spec import STRIDES
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return {name: np.ascontiguousarray(_turned(name, array, (2, 3, 1, 0))) for name, array in weights.items()}


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return {name: _turned(name, np.asarray(array), (3, 2, 0, 1)) for name, array in params.items()}


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    hidden = jnp.transpose(inputs["image"], (0, 2, 3, 1))
    for number, stride in enumerate(STRIDES):
        hidden = jax.lax.conv_general_dilated(
            hidden,
            params[f"conv{number}.weight"],
            window_strides=(stride, stride),
            padding=((1, 1), (1, 1)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        hidden = jax.nn.relu(hidden + params[f"conv{number}.bias"])
    return (hidden.mean(axis=(1, 2)) @ params["head.weight"] + params["head.bias"],)


def _turned(name: str, array: Any, axes: tuple[int, ...]) -> Any:
    if array.ndim == 4:
        return array.transpose(axes)
    return array.T if name == "head.weight" else array
