"""The convolution as a pure function. Images are NHWC inside and the kernel HWIO, as XLA prefers on a CPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.models.arrays import Arrays


def params(weights: Arrays) -> dict[str, Any]:
    return {"kernel": np.ascontiguousarray(weights["kernel"].transpose(2, 3, 1, 0))}


def canonical(params: dict[str, Any]) -> dict[str, Any]:
    return {"kernel": params["kernel"].transpose(3, 2, 0, 1)}


def forward(params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
    convolved = jax.lax.conv_general_dilated(
        jnp.transpose(inputs["image"], (0, 2, 3, 1)),
        params["kernel"],
        window_strides=(1, 1),
        padding=((PADDING, PADDING), (PADDING, PADDING)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return (jnp.transpose(convolved, (0, 3, 1, 2)),)
