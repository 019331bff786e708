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


def chunks(size: int) -> Iterator[slice]:
    """Slices of a flat array of so many numbers; none where it is empty."""
    return (slice(first, first + _NUMBERS) for first in range(0, size, _NUMBERS))


def flat(values: Array) -> Array:
    return values.reshape(-1)


def are_same_bytes(one: Array, other: Array) -> bool:
    """Compare two contiguous arrays of one type and shape."""
    kind = np.uint8 if one.nbytes % _WORD_BYTES else np.uint64
    first, second = flat(one).view(kind), flat(other).view(kind)
    return all(np.array_equal(first[part], second[part]) for part in chunks(first.size))


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
