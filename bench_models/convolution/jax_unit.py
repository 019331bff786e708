"""Units in JAX. Images are NHWC and kernels HWIO, the layout that XLA prefers."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.convolution.units import EPSILON, MOMENTUM, Unit
from fairlap.models.arrays import Arrays
from jax import lax


def apply_unit(params: dict[str, Any], unit: Unit, image: Any, statistics: dict[str, Any] | None = None) -> Any:
    """With ``statistics``, as in training: normalised by the batch, whose moving averages are put there."""
    convolved = lax.conv_general_dilated(
        image,
        params[f"{unit.convolution}.weight"],
        window_strides=(unit.stride, unit.stride),
        padding=((unit.padding, unit.padding), (unit.padding, unit.padding)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=unit.groups,
    )
    norm = unit.normalisation
    if statistics is not None:
        return _normalise_by_batch(params, norm, convolved, statistics)
    scale = params[f"{norm}.weight"] * lax.rsqrt(params[f"{norm}.running_var"] + EPSILON)
    return convolved * scale + (params[f"{norm}.bias"] - params[f"{norm}.running_mean"] * scale)


def _normalise_by_batch(params: dict[str, Any], norm: str, image: Any, statistics: dict[str, Any]) -> Any:
    mean, variance = image.mean(axis=(0, 1, 2)), image.var(axis=(0, 1, 2))
    pixels = image.size // image.shape[-1]
    for part, value in (("running_mean", mean), ("running_var", variance * (pixels / (pixels - 1)))):
        statistics[f"{norm}.{part}"] = (1 - MOMENTUM) * params[f"{norm}.{part}"] + MOMENTUM * value
    scale = params[f"{norm}.weight"] * lax.rsqrt(variance + EPSILON)
    return image * scale + (params[f"{norm}.bias"] - mean * scale)


def to_jax_layout(weights: Arrays) -> dict[str, Any]:
    return {name: np.ascontiguousarray(array.transpose(_AXES_IN[array.ndim])) for name, array in weights.items()}


def to_spec_layout(params: dict[str, Any]) -> dict[str, Any]:
    return {name: array.transpose(_AXES_OUT[array.ndim]) for name, array in params.items()}


# Kernels have four axes and the classifier's matrix has two.
_AXES_IN = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
_AXES_OUT = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}
