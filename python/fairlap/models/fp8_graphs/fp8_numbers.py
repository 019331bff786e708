"""Numbers of eight bits as E4M3 has them: four bits of exponent, three of mantissa, no infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FP8 = "float8_e4m3fn"
"""NumPy's name for the type, once ml_dtypes is imported, as the package onnx does."""

LARGEST = 448.0
SMALLEST_EXPONENT = -6  # of a number whose mantissa has its leading bit; smaller ones have steps of 2**-9
BITS_OF_MANTISSA = 3

Array = npt.NDArray[Any]


def steps_between(values: Array) -> Array:
    """Find the distance of neighbours in fp8 around each value."""
    size = np.abs(values)
    _, exponents = np.frexp(np.where(size > 0, size, 2.0**SMALLEST_EXPONENT))
    return np.asarray(np.ldexp(1.0, np.maximum(exponents - 1, SMALLEST_EXPONENT) - BITS_OF_MANTISSA))


def rounded_to_fp8(values: Array) -> Array:
    """Round to the nearest number, of two equally near ones to the even one. What is larger becomes the largest."""
    limited = np.clip(values, -LARGEST, LARGEST)
    steps = steps_between(limited).astype(values.dtype)
    return np.asarray(np.round(limited / steps) * steps, values.dtype)


def scales_of(values: Array, axis: int | None) -> npt.NDArray[np.float32]:
    """Map the largest number to the largest of fp8, in each place of an axis or in all; zeros alone have a scale of 1.

    The scale of an axis is as long as the axis, and of none a single number.
    """
    others = None if axis is None else tuple(each for each in range(values.ndim) if each != axis)
    return scales_for(np.abs(values).max(axis=others, initial=0))


def scales_for(largest: Array | float) -> npt.NDArray[np.float32]:
    whole = np.asarray(largest, np.float64) / LARGEST
    return np.where(whole > 0, np.maximum(whole, np.finfo(np.float32).tiny), 1).astype(np.float32)
