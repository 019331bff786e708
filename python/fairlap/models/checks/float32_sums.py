"""What float32 may lose in a sum, whichever way a framework adds it up.

Added one after the other, n terms are rounded n times, each time by at most half a unit in the last place of the sum so
far (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). Where the terms differ, roundings are random:
those of terms around 0 add up to about a third of a rounding of the norms of a product's factors, and those of terms of
one sign to a quarter of the root of n roundings of the sum (Higham and Mary, A New Approach to Probabilistic Rounding
Error Analysis). Equal terms are rounded alike, up to n / 2 times, so sums are added up in float32 one by one and in
lanes as well, and the larger error counts. Small whole numbers are not rounded at all.

A rounding is the same wherever the same numbers meet, so where a result is moved to depends on its value: equal pixels
stay equal, and a mean over them does not average their roundings away.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.spec import UNIT_ROUNDOFF

ROUNDOFF = UNIT_ROUNDOFF["fp32"]
_LANES = (1, 8)
_BITS = 24
_OF_NORMS, _OF_SUM = 1 / 3, 1 / 4
_SHIFT = np.uint32(15)
_MIXER = np.uint32(0x2C1B3C6D)
_LAST_BIT = np.uint32(31)
_AT_ONCE = 2**20  # numbers, so that little memory is needed besides

Array = npt.NDArray[Any]


def lost_in_sum(terms: Array, axes: tuple[int, ...]) -> Array:
    """Bound the error of a sum over these axes, of which each keeps the size 1."""
    kept = [1 if axis in axes else size for axis, size in enumerate(terms.shape)]
    count = math.prod(terms.shape[axis] for axis in axes)
    if not terms.size:
        return np.zeros(kept)
    last = np.moveaxis(terms, axes, range(-len(axes), 0))
    with np.errstate(all="ignore"):
        narrow = np.ascontiguousarray(last, np.float32).reshape(-1, count)
        exact = narrow.sum(axis=1, dtype=np.float64)
        error = lost_in_orders(narrow)
        norm = np.sqrt(np.square(narrow, dtype=np.float64).sum(axis=1))
        largest = np.abs(narrow).sum(axis=1, dtype=np.float64)
        exactly = are_multiples(narrow, largest[:, None]).all(axis=1)
    return lost_by(error, exact, norm, count, exactly).reshape(kept)


def lost_in_orders(rows: npt.NDArray[np.float32]) -> Array:
    """Find the error of each row's sum in the order that loses most: one after the other, or in lanes."""
    exact = rows.sum(axis=1, dtype=np.float64)
    return np.asarray(np.max([np.abs(_added(rows, lanes) - exact) for lanes in _LANES], axis=0))


def lost_by(error: Array, exact: Array, norm: Array, count: int, exactly: Any) -> Array:
    """Bound the error of sums of ``count`` terms, from their norms and the error that they have in one order.

    Those that are added ``exactly`` in every order are rounded once, when they are divided by their count.
    """
    at_random = lost_at_random(exact, math.sqrt(count) * norm, count)
    return np.asarray(np.where(exactly, 0.0, np.maximum(error, at_random)) + ROUNDOFF * np.abs(exact))


def are_multiples(terms: Array, largest: Any) -> npt.NDArray[np.bool_]:
    """Whether terms are multiples of the last place of a sum that is below twice ``largest``, so that none is lost."""
    _, exponent = np.frexp(largest)
    in_places = np.ldexp(terms.astype(np.float64), _BITS - exponent)
    return np.asarray(in_places == np.rint(in_places))


def lost_at_random(exact: Array, norms: Array, count: int) -> Array:
    return ROUNDOFF * np.hypot(_OF_NORMS * norms, _OF_SUM * math.sqrt(count) * np.abs(exact))


def moved(values: Array, lost: Array, key: int) -> Array:
    """Move each value up or down by what was lost; equal ones alike, otherwise as the key draws it."""
    found = np.array(values, np.float64, order="C")
    flat, of_each = found.reshape(-1), lost.reshape(-1)
    with np.errstate(all="ignore"):
        for first in range(0, flat.size, _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            by = _signs(flat[some], key) * of_each[some]
            flat[some] += np.where(np.isfinite(by), by, 0.0)
    return found


def _added(terms: npt.NDArray[np.float32], lanes: int) -> Array:
    """Add each row up in float32, in so many sums by turns."""
    rows, count = terms.shape
    whole = count // lanes * lanes
    rest = terms[:, whole:]
    if whole:
        in_lanes = np.add.accumulate(terms[:, :whole].reshape(rows, -1, lanes), axis=1)[:, -1]
        rest = np.concatenate([in_lanes, rest], axis=1)
    return np.asarray(np.add.accumulate(rest, axis=1)[:, -1])


def _signs(values: Array, key: int) -> Array:
    """Hash the float32 form of each value."""
    mixed = values.astype(np.float32).view(np.uint32) * np.uint32(key | 1)
    mixed ^= mixed >> _SHIFT
    mixed *= _MIXER
    return 1.0 - 2.0 * (mixed >> _LAST_BIT)
