"""What one array of an answer should be, and how far rounding may move each of its numbers.

A sum of n numbers adds the rounding of n operations, which grows as the square root of n, and of equal numbers as n: so
many times as far as the reference moves with its arguments may an answer be off. What the reference errs by in its own
type, and the rounding of the answer, come on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE
from fairlap.scenarios.callables.answers.arrays import SMALLEST_NORMAL, Array, Leaf
from fairlap.scenarios.callables.answers.drawn import in_float64
from fairlap.scenarios.callables.answers.right_answers.in_chunks import are_all_finite, chunks, distance, flat

_IN_FLOAT64 = (np.dtype(np.float64), np.dtype(np.complex128))
_FEWEST_OPERATIONS = 64  # a function such as exp rounds a few times, even of a single number
_UNKNOWN_OPERATIONS = 2**20
_OPERATIONS_ROUNDED = 4.0  # of the answer itself, such as a product with a scale at the end
_PLAIN = 4.0  # times as far off as the reference in its own type
_LEAST_MOVED = 0.05  # of the usual: a single element may be moved by nothing, by chance
_TINY = 4.0  # smallest normal numbers, which some units take for 0


@dataclass(frozen=True)
class TrueLeaf:
    """``allowed`` is the largest right distance from ``values``, element by element; None where they must be equal.

    ``own`` is what the reference answers in its own type. Elements that are not ``stable`` change when the arguments
    are moved by their rounding, so that they prove nothing; None where all are.
    """

    values: Array
    own: Leaf
    allowed: Array | None
    stable: Array | None
    roundoff: float = 0.0  # of the type that is asked for


class Moving:
    """One array of the answer while the arguments of its reference are moved by their rounding."""

    def __init__(self, own: Leaf, truth: Leaf) -> None:
        self._own = own
        self._is_exact = not own.is_inexact or not truth.is_inexact
        self._times = 0
        if self._is_exact:
            self._truth = truth.values
            self._stable: Array | None = np.ones(own.values.shape, bool)
            return
        self._truth = truth.values if truth.values.dtype in _IN_FLOAT64 else in_float64(truth.values)
        self._stable = None
        if not (are_all_finite(self._truth) and are_all_finite(own.values)):
            self._stable = np.isfinite(self._truth) & np.isfinite(own.values)
        self._spread = np.zeros(self._truth.shape)

    def moved_to(self, values: Array) -> None:
        """Take what the reference answers to arguments that were moved; of another shape it shows nothing."""
        self._times += 1
        if values.shape != self._truth.shape:
            return
        if self._is_exact:
            if self._stable is not None:
                self._stable &= np.asarray(values == self._truth)
            return
        there, truth, spread = flat(values), flat(self._truth), flat(self._spread)
        for part in chunks(spread.size):
            np.maximum(spread[part], self._of_stable(distance(there[part], truth[part]), part), out=spread[part])

    def true_leaf(self, operations: int, inputs_roundoff: float, in_sums: float = 0.0) -> TrueLeaf:
        """``operations`` is how many numbers the arguments have, of types of which the finest has this roundoff.

        ``in_sums`` is how many roundings of itself the answer may be off by as a sum of equal numbers.
        """
        if self._is_exact:
            stable = None if self._stable is None or self._stable.all() else self._stable
            return TrueLeaf(self._truth, self._own, None, stable)
        with np.errstate(all="ignore"):
            roundoff = _answer_roundoff(self._own, inputs_roundoff)
            self._complete_spread(roundoff)
            operations = max(operations if self._times else _UNKNOWN_OPERATIONS, _FEWEST_OPERATIONS)
            self._allow(max(math.sqrt(operations), in_sums), roundoff)
        return TrueLeaf(self._truth, self._own, self._spread, self._stable, roundoff)

    def _complete_spread(self, roundoff: float) -> None:
        """Where it says nothing, take the rounding of the answer itself."""
        truth, spread = flat(self._truth), flat(self._spread)
        if not self._times:  # the callable's own numbers, of which nothing is known
            largest = max((float(np.max(self._sizes(truth, part))) for part in chunks(truth.size)), default=0.0)
            spread[:] = roundoff * largest
        elif roundoff == UNIT_ROUNDOFF_OF_TYPE["float64"]:  # in which a move by one rounding may round away again
            for part in chunks(spread.size):
                np.maximum(spread[part], 2 * roundoff * self._sizes(truth, part), out=spread[part])
        if not are_all_finite(spread):
            spread[~np.isfinite(spread)] = np.inf

    def _allow(self, times: float, roundoff: float) -> None:
        """Turn the spread into what is allowed, in place."""
        truth, own, allowed = flat(self._truth), flat(self._own.values), flat(self._spread)
        spreads, errors, sizes = _Usual(), _Usual(), _Usual()
        for part in chunks(allowed.size):
            spreads.add(allowed[part])
            errors.add(self._errors(own, truth, part))
            sizes.add(self._sizes(truth, part))
        least = _LEAST_MOVED * spreads.value
        rounded, tiny = _OPERATIONS_ROUNDED * roundoff, _TINY * SMALLEST_NORMAL[self._own.kind]
        for part in chunks(allowed.size):
            moved = np.maximum(allowed[part], least)
            moved *= times
            off = np.maximum(self._errors(own, truth, part), errors.value)
            off *= _PLAIN
            moved += off
            size = np.maximum(self._sizes(truth, part), sizes.value)  # small ones are often differences
            size *= rounded
            moved += size
            np.add(moved, tiny, out=allowed[part])

    def _errors(self, own: Array, truth: Array, part: slice) -> Array:
        return self._of_stable(distance(own[part], truth[part]), part)

    def _sizes(self, truth: Array, part: slice) -> Array:
        return self._of_stable(np.abs(truth[part]), part)

    def _of_stable(self, values: Array, part: slice) -> Array:
        """Set those of others to 0, in place."""
        if self._stable is not None:
            values[~flat(self._stable)[part]] = 0.0
        return values


class _Usual:
    """The root of the mean square of those that are finite."""

    def __init__(self) -> None:
        self._squares, self._count = 0.0, 0

    def add(self, values: Array) -> None:
        squares = float(np.square(values).sum())
        if not math.isfinite(squares):
            values = values[np.isfinite(values)]
            squares = float(np.square(values).sum())
        self._squares += squares
        self._count += values.size

    @property
    def value(self) -> float:
        return math.sqrt(self._squares / self._count) if self._count else 0.0


def _answer_roundoff(own: Leaf, inputs_roundoff: float) -> float:
    """Choose the type of the arguments where the reference computes in float64 what callables answer in theirs."""
    roundoff = UNIT_ROUNDOFF_OF_TYPE[own.kind]
    return max(roundoff, inputs_roundoff) if roundoff == UNIT_ROUNDOFF_OF_TYPE["float64"] else roundoff
