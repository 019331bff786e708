"""Units in NumPy, for the references: plain sums of products, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.convolution.units import EPSILON, MOMENTUM, Unit
from fairlap.models.arrays import Arrays
from fairlap.models.checks.differentiation import plain

Array = npt.NDArray[Any]


def apply_unit(weights: Arrays, unit: Unit, image: Array, statistics: dict[str, Array] | None = None) -> Array:
    """With ``statistics``, as in training: normalised by the batch, whose moving averages are put there."""
    kernel = weights[f"{unit.convolution}.weight"]
    margin = ((0, 0), (0, 0), (unit.padding, unit.padding), (unit.padding, unit.padding))
    padded = np.pad(image, margin) if unit.padding else image
    convolve = _depthwise if unit.groups > 1 else _dense
    convolved = convolve(padded, kernel, unit)
    if statistics is None:
        return _normalise(weights, unit.normalisation, convolved)
    return _normalise_by_batch(weights, unit.normalisation, convolved, statistics)


def _dense(padded: Array, kernel: Array, unit: Unit) -> Array:
    """One matrix product per image: kernels as rows, the pixels under each position as columns."""
    side = unit.image_after
    shifts = [_shifted(padded, row, column, unit) for row, column in _positions(unit)]
    columns = np.stack(shifts, axis=2) if len(shifts) > 1 else shifts[0]
    columns = columns.reshape(len(padded), -1, side * side)
    convolved: Array = kernel.reshape(unit.outward, -1) @ columns
    return convolved.reshape(-1, unit.outward, side, side)


def _depthwise(padded: Array, kernel: Array, unit: Unit) -> Array:
    first, *others = (
        _shifted(padded, row, column, unit) * kernel[:, 0, row, column, None, None] for row, column in _positions(unit)
    )
    return sum(others, start=first)


def _positions(unit: Unit) -> list[tuple[int, int]]:
    return [(row, column) for row in range(unit.kernel) for column in range(unit.kernel)]


def _shifted(padded: Array, row: int, column: int, unit: Unit) -> Array:
    """Select the pixels that one element of the kernel meets."""
    reach = unit.stride * (unit.image_after - 1) + 1
    return padded[:, :, row : row + reach : unit.stride, column : column + reach : unit.stride]


def _normalise(weights: Arrays, name: str, image: Array) -> Array:
    mean, variance, scale, shift = (
        weights[f"{name}.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
    )
    return (image - mean) / np.sqrt(variance + EPSILON) * scale + shift


def _normalise_by_batch(weights: Arrays, name: str, image: Array, statistics: dict[str, Array]) -> Array:
    """Normalise by the batch; the moving variance is a sample's, divided by one less than the number of pixels."""
    centred = image - image.mean(axis=(0, 2, 3), keepdims=True)
    variance = (centred**2).mean(axis=(0, 2, 3), keepdims=True)
    pixels = image.size / image.shape[1]
    found = {
        "running_mean": plain(image).mean(axis=(0, 2, 3)),
        "running_var": plain(variance).reshape(-1) * (pixels / (pixels - 1)),
    }
    for part, value in found.items():
        statistics[f"{name}.{part}"] = (1 - MOMENTUM) * weights[f"{name}.{part}"] + MOMENTUM * value
    scale, shift = (weights[f"{name}.{part}"][:, None, None] for part in ("weight", "bias"))
    normalised: Array = centred / np.sqrt(variance + EPSILON) * scale + shift
    return normalised
