"""Arrays that are hard to compute with, or that an algorithm requires, such as a symmetric matrix.

Each maker takes its amount, a shape and a generator, and gives float32 values. The last axis is the one along which
products and sums are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.spec import Hardness, Made

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

MOST_OF_HILBERT = 9
"""Rows of the largest Hilbert matrix whose integer multiple has entries that float32 holds exactly."""

_SMALLEST_NORMAL = 2.0**-126


def made(fill: Made, shape: Shape, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(_MAKERS[fill.how](fill.amount, shape, rng), np.float32)


def hilbert_multiple(rows: int) -> int:
    """By what the entries of a Hilbert matrix become integers: the least common multiple of its denominators."""
    return math.lcm(*range(1, 2 * rows))


def _hilbert(_amount: float, shape: Shape, _rng: np.random.Generator) -> Array:
    rows = shape[-1]
    if shape != (rows, rows) or rows > MOST_OF_HILBERT:
        raise ValueError(f"a Hilbert matrix has up to {MOST_OF_HILBERT} rows and as many columns, not {shape}")
    places = np.arange(rows)
    return hilbert_multiple(rows) // (places[:, None] + places[None, :] + 1)


def _graded(amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw columns whose sizes fall by ``amount`` powers of ten from the first to the last."""
    return rng.standard_normal(shape) * 10.0 ** (-amount * np.linspace(0, 1, shape[-1]))


def _opposed(_amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw a first half, and minus the same as the second half."""
    first = rng.standard_normal((*shape[:-1], shape[-1] // 2)).astype(np.float32)
    rest = np.zeros((*shape[:-1], shape[-1] % 2), np.float32)
    return np.concatenate((first, -first, rest), -1)


def _nearly_repeated(amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw a first half, and a second half that differs from it by ``amount`` powers of ten less than its size."""
    half = (*shape[:-1], shape[-1] // 2)
    first, moved = rng.standard_normal(half), rng.standard_normal(half)
    rest = np.zeros((*shape[:-1], shape[-1] % 2))
    return np.concatenate((first, first + 10.0**-amount * moved, rest), -1)


def _cancelling(amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw numbers whose sum is ``amount`` powers of ten below the sum of their sizes, in a drawn order."""
    values = np.abs(rng.standard_normal(shape))
    pairs = shape[-1] // 2
    if amount > 0:
        lift = 1 + 2 * 10.0**-amount
        values[..., pairs : 2 * pairs] = -values[..., :pairs]
        values[..., :pairs] *= lift
    return rng.permuted(values, axis=-1)


def _subnormal(_amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw a first half a little above the smallest normal number, and a second half below it."""
    sizes = np.where(np.arange(shape[-1]) < shape[-1] // 2, 4.0, 2.0**-6) * _SMALLEST_NORMAL
    return rng.uniform(1, 2, shape) * sizes


def _specials(_amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw rows in turn: plain; with a NaN; with plus infinity; with minus infinity; of minus infinity alone.

    Then with NaN, plus and minus infinity together.
    """
    values = rng.standard_normal(shape).astype(np.float32)
    for row, line in enumerate(values.reshape(-1, shape[-1])):
        places = rng.permutation(shape[-1])
        match row % 6:
            case 1:
                line[places[:1]] = np.nan
            case 2:
                line[places[:1]] = np.inf
            case 3:
                line[places[:1]] = -np.inf
            case 4:
                line[:] = -np.inf
            case 5:
                line[places[:3]] = (np.nan, np.inf, -np.inf)
            case _:
                pass
    return values


def _definite(amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw a symmetric positive definite matrix whose smallest eigenvalue is at least ``amount``."""
    factor = rng.standard_normal(shape)
    product = factor @ factor.swapaxes(-1, -2) / shape[-1]
    return product + amount * np.eye(shape[-1])


def _symmetric(_amount: float, shape: Shape, rng: np.random.Generator) -> Array:
    half = rng.standard_normal(shape)
    return (half + half.swapaxes(-1, -2)) / math.sqrt(2 * shape[-1])


_MAKERS: Mapping[Hardness, Callable[[float, Shape, np.random.Generator], Array]] = {
    "cancelling": _cancelling,
    "opposed": _opposed,
    "nearly_repeated": _nearly_repeated,
    "hilbert": _hilbert,
    "graded": _graded,
    "subnormal": _subnormal,
    "specials": _specials,
    "definite": _definite,
    "symmetric": _symmetric,
}
