"""Units in JAX. Images are NHWC and kernels HWIO, the layout that XLA prefers."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.convolution.units import EPSILON, Unit
from fairlap.models.workload import Arrays
from jax import lax


def apply_unit(params: dict[str, Any], unit: Unit, image: Any) -> Any:
    convolved = lax.conv_general_dilated(
        image,
        params[f"{unit.convolution}.weight"],
        window_strides=(unit.stride, unit.stride),
        padding=((unit.padding, unit.padding), (unit.padding, unit.padding)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=unit.groups,
    )
    norm = unit.normalisation
    scale = params[f"{norm}.weight"] * lax.rsqrt(params[f"{norm}.running_var"] + EPSILON)
    return convolved * scale + (params[f"{norm}.bias"] - params[f"{norm}.running_mean"] * scale)


def to_jax_layout(weights: Arrays) -> dict[str, Any]:
    return {name: np.ascontiguousarray(array.transpose(_AXES_IN[array.ndim])) for name, array in weights.items()}


def to_spec_layout(params: dict[str, Any]) -> dict[str, Any]:
    return {name: array.transpose(_AXES_OUT[array.ndim]) for name, array in params.items()}


# Kernels have four axes and the classifier's matrix has two.
_AXES_IN = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
_AXES_OUT = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}
