"""Arithmetic over large arrays in pieces that stay in the caches.

Whole arrays would write each step of a formula to memory: on ten million numbers that, and the new pages which it
takes, cost many times what the arithmetic does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_NUMBERS = 1 << 14
_WORD_BYTES = 8
_LINE_BYTES = 64
_FEW_BYTES = 1 << 14  # that are copied faster than an array is made of the result


def chunks(size: int) -> Iterator[slice]:
    """Slices of a flat array of so many numbers; none where it is empty."""
    return (slice(first, first + _NUMBERS) for first in range(0, size, _NUMBERS))


def flat(values: Array) -> Array:
    return values.reshape(-1)


def are_same_bytes(one: Array, other: Array) -> bool:
    """Compare two contiguous arrays of one type and shape."""
    if one.nbytes <= _FEW_BYTES:
        return one.tobytes() == other.tobytes()
    kind = np.uint8 if one.nbytes % _WORD_BYTES else np.uint64
    first, second = flat(one).view(kind), flat(other).view(kind)
    return all((first[part] == second[part]).all() for part in chunks(first.size))


def read(values: Array) -> None:
    """Bring an array into the caches: a byte of every line of them."""
    if values.flags.c_contiguous:
        flat(values).view(np.uint8)[::_LINE_BYTES].max(initial=0)
    else:
        np.count_nonzero(values)


def are_all_finite(values: Array) -> bool:
    numbers = flat(values)
    return all(np.isfinite(numbers[part]).all() for part in chunks(numbers.size))


def distance(values: Array, others: Array) -> Array:
    """How far they are apart, each; of complex numbers the modulus."""
    found: Array = np.abs(np.subtract(values, others))
    return found


def are_within(values: Array, others: Array, allowed: Array) -> bool:
    """Whether all are at most so far apart; what is no number is not."""
    one, other, most = flat(values), flat(others), flat(allowed)
    return all((distance(one[part], other[part]) <= most[part]).all() for part in chunks(one.size))


class Buffers:
    """Arrays that every evaluation of one reference writes again: new ones would take new pages each time."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._taken = 0

    def begin(self) -> None:
        """Let all of them be taken again, in the same order."""
        self._taken = 0

    def next(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        place = self._taken
        self._taken += 1
        if place < len(self._arrays) and (self._arrays[place].shape, self._arrays[place].dtype) == (shape, dtype):
            return self._arrays[place].view()
        made = np.empty(shape, dtype)
        self._arrays[place : place + 1] = [made]
        return made.view()
