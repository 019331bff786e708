"""What a callable should answer, from its reference in float64, and by how much rounding may move that.

How far rounding moves an answer is found from the reference itself: its arguments are moved by what their type rounds
away, a few times, in random directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import InvalidRequest, described
from fairlap.models.checks.long_sums import STEP, Addends, draws_for
from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE
from fairlap.scenarios.callables.answers.arrays import (
    Array,
    Deferred,
    Leaf,
    Leaves,
    NotComparable,
    answer_views,
    are_identical,
    leaves_left,
    leaves_of,
)
from fairlap.scenarios.callables.answers.drawn import changed, copy_of, float64_of, in_float64, leaves_of_arguments
from fairlap.scenarios.callables.answers.right_answers.allowed import Moving, TrueLeaf
from fairlap.scenarios.callables.answers.right_answers.in_chunks import Buffers, chunks, distance, flat

Call = Callable[[Arguments], Any]  # of a callable that is complete when it returns

_MOVES = 3
_MANY = 2**16  # numbers, of which one move of each shows enough
_MOST_OPERATIONS = 2**24
_BITS = 8
_SIGNS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * 2.0 - 1.0  # of each of its bits
_ORDERS_OF_SUMMING = 1000.0  # roundings by which a computation may differ from itself
_EVALUATIONS_OF_NEAR = 5


class DrawsNumbers(InvalidRequest):
    code = "E_SOURCE_RANDOM"


@dataclass(frozen=True)
class Outcome:
    """What a call returned, and which of its arguments it changed."""

    answer: Leaves
    arguments: Leaves
    changed: frozenset[str]

    @property
    def answered(self) -> Leaves:
        """The answer: what it returned, and the arguments that it changed."""
        return self.answer | {name: self.arguments[name] for name in self.changed}

    def is_same_as(self, other: Outcome) -> bool:
        """Compare what was answered bit by bit."""
        if self.changed != other.changed or self.answer.keys() != other.answer.keys():
            return False
        theirs = other.answered
        return all(are_identical(leaf, theirs[name]) for name, leaf in self.answered.items())


@dataclass(frozen=True)
class Truth:
    """Of one call."""

    leaves: Mapping[str, TrueLeaf]
    changed: frozenset[str]
    in_float64: bool

    @property
    def proves(self) -> bool:
        """Whether a wrong answer would be noticed: one of nothing but zeros would not."""
        return any(
            (leaf.stable is None or leaf.stable.any()) and np.any(leaf.own.values != _zero_of(leaf.own))
            for leaf in self.leaves.values()
        )


def outcome_of(call: Call, arguments: Arguments, before: Leaves) -> Outcome:
    """Call with a copy of the arguments, of which ``before`` are the leaves."""
    given = copy_of(arguments)
    returned = call(given)
    return outcome_on(given, before, returned)


def outcome_on(given: Arguments, before: Leaves, returned: Any) -> Outcome:
    """``given`` are the arguments that a call has had, ``before`` the leaves of equal ones that it has not."""
    answer, after = leaves_of(returned), leaves_of_arguments(given)
    differing = {name for name, leaf in after.items() if name not in before or not are_identical(leaf, before[name])}
    return Outcome(answer, after, frozenset(differing))


def truth_of(reference: Call, name: str, arguments: Arguments, seed: int = 0, buffers: Buffers | None = None) -> Truth:
    """Evaluate the reference in its own type and in float64, and with arguments that are moved a little."""
    own = evaluated(reference, name, arguments)
    inexact = [leaf for leaf in leaves_of_arguments(arguments).values() if leaf.is_inexact]
    operations, inputs_roundoff = _operations(inexact), _roundoff_of(inexact)
    wider = _Wider(reference, arguments, own, buffers or Buffers())
    wide = wider.answered() if inexact else None
    truths = own.answered if wide is None else wide
    with np.errstate(all="ignore"):
        moving = {leaf_name: Moving(leaf, truths.get(leaf_name, leaf)) for leaf_name, leaf in own.answered.items()}
        if inexact:
            roundoff = _accumulated(inputs_roundoff)
            for number in range(1 + (_MOVES if operations < _MANY else 1)):
                move = _Move(roundoff, np.random.default_rng([seed, number]) if number else None)
                moved = wider.answered_if(move, wide=wide is not None) or truths
                for leaf_name in moving.keys() & moved.keys():
                    moving[leaf_name].moved_to(moved[leaf_name].values)
        sums = {}
        if wide is not None:
            sums = _roundings_of_sums(wider, arguments, truths, seed, _accumulated(inputs_roundoff))
        leaves = {
            leaf_name: each.true_leaf(operations, inputs_roundoff, sums.get(leaf_name, 0.0))
            for leaf_name, each in moving.items()
        }
    return Truth(leaves, own.changed, wide is not None)


def evaluated(reference: Call, name: str, arguments: Arguments) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return outcome_of(reference, arguments, leaves_of_arguments(arguments))
    except (InvalidRequest, NotComparable, Deferred):
        raise
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"the reference {name} raised {described(error)}", code="E_REFERENCE") from error


@dataclass(frozen=True)
class _Move:
    """Move numbers by their rounding: each at random, or all upwards without ``rng``."""

    roundoff: float
    rng: np.random.Generator | None

    def write(self, given: Array, moved: Array) -> None:
        """Write flat arrays."""
        step = max(self.roundoff, 2 * UNIT_ROUNDOFF_OF_TYPE.get(moved.dtype.name, 0.0))  # less would round away again
        drawn = None if self.rng is None else np.frombuffer(self.rng.bytes(-(-moved.size // _BITS)), np.uint8)
        factors_of_byte = 1.0 + step * _SIGNS_OF_BYTE
        for part in chunks(moved.size):
            here = moved[part]
            here[:] = given[part]
            if drawn is None:
                here *= 1.0 + step
            else:
                drawn_here = drawn[part.start // _BITS : -(-part.stop // _BITS)]
                factors = factors_of_byte.take(drawn_here, axis=0).reshape(-1)[: here.size]
                np.multiply(here, factors, out=here, casting="same_kind")


@dataclass(frozen=True)
class _Wider:
    """A reference on arguments in float64, and on those that are moved. ``own`` is its answer in its own type."""

    reference: Call
    arguments: Arguments
    own: Outcome
    buffers: Buffers

    def answered(self) -> Leaves | None:
        """None where it cannot, or answers in a type of its own all the same."""
        self.buffers.begin()
        given = changed(self.arguments, lambda values: self._written(values, None, wide=True))
        try:
            with np.errstate(all="ignore"):
                found = leaves_left(self.reference(given)) | self._changed(given)
        except (Exception, SystemExit):
            return None
        if set(found) != set(self.own.answered):
            return None
        for name, leaf in self.own.answered.items():
            wide = found[name]
            if wide.values.shape != leaf.values.shape:
                return None
            if leaf.is_inexact and wide.kind not in ("float64", "complex128"):
                return None
            if name in self.own.changed:  # it is in a buffer
                found[name] = Leaf(np.array(wide.values), wide.kind)
        return found

    def answered_if(self, move: _Move, *, wide: bool, at_least: int = 0) -> Leaves:
        """Find the answers where the reference left them; none where it cannot. Arrays of fewer numbers stay."""

        def written(values: Array) -> Array:
            return self._written(values, move if values.size >= at_least else None, wide=wide)

        self.buffers.begin()
        try:
            given = changed(self.arguments, written)
            return answer_views(self.reference(given)) | self._changed(given)
        except (Exception, SystemExit):
            return {}

    def _written(self, values: Array, move: _Move | None, *, wide: bool) -> Array:
        if wide and values.dtype.kind not in "fc":
            values = in_float64(values)
        if values.dtype.kind not in "fc":
            return np.array(values)
        found = self.buffers.next(values.shape, float64_of(values) if wide else values.dtype)
        if move is None:
            found[...] = values
        else:
            move.write(flat(values), flat(found))
        return found

    def _changed(self, given: Arguments) -> Leaves:
        """Find the arguments, which nobody else has, that the reference changes."""
        if not self.own.changed:
            return {}
        leaves = leaves_of_arguments(given)
        return {name: leaves[name] for name in self.own.changed}


def _roundings_of_sums(
    wider: _Wider, arguments: Arguments, truths: Leaves, seed: int, roundoff: float
) -> dict[str, float]:
    """Count, for each array of the answer, the roundings of itself that a sum of many or equal arguments may lose.

    None of few that differ: as many as the root of their count are allowed anyway.
    """
    arrays = [leaf.values for leaf in leaves_of_arguments(arguments).values() if leaf.values.dtype.kind in "fc"]
    if not arrays:
        return {}
    largest = max(arrays, key=lambda array: array.size)
    addends = Addends.of(largest, (leaf.values for leaf in truths.values()))
    if not addends.are_repeated and largest.size < _MANY:
        return {}
    if addends.most_roundings(roundoff) <= math.sqrt(largest.size):
        return {}
    draws = draws_for({name: leaf.values for name, leaf in truths.items()})
    found: dict[str, list[Array]] = {}
    for number in range(1 + draws):
        move = _Move(STEP, np.random.default_rng([seed, number]) if number else None)
        for name, leaf in wider.answered_if(move, wide=True, at_least=largest.size).items():
            if leaf.is_inexact and name in truths and leaf.values.shape == truths[name].values.shape:
                found.setdefault(name, []).append(distance(leaf.values, truths[name].values))
    return {
        name: addends.roundings(moved[0], moved[1:], roundoff)
        for name, moved in found.items()
        if len(moved) == 1 + draws
    }


def _roundoff_of(inexact: list[Leaf]) -> float:
    """Find that of the finest type among arrays; of numbers alone, that of float64."""
    kinds = [leaf.kind for leaf in inexact if leaf.values.ndim]
    return min((UNIT_ROUNDOFF_OF_TYPE[kind] for kind in kinds), default=UNIT_ROUNDOFF_OF_TYPE["float64"])


def _accumulated(roundoff: float) -> float:
    """Choose float32 for types of 16 bits, since sums of those are computed in it."""
    return min(roundoff, UNIT_ROUNDOFF_OF_TYPE["float32"])


def _operations(inexact: list[Leaf]) -> int:
    return min(max(sum(leaf.values.size for leaf in inexact), 1), _MOST_OPERATIONS)


def _zero_of(leaf: Leaf) -> Any:
    return "" if leaf.values.dtype.kind == "U" else b"" if leaf.values.dtype.kind == "S" else leaf.values.dtype.type(0)


def require_no_drawing(reference: Call, name: str, arguments: Arguments, truth: Truth) -> None:
    """Evaluate it again on the same arguments: once where the bits agree, and a few times where they do not.

    Two numbers that were drawn may be near each other by chance; several seldom are.
    """
    for _ in range(_EVALUATIONS_OF_NEAR):
        again = evaluated(reference, name, arguments).answered
        for leaf_name, leaf in truth.leaves.items():
            other = again.get(leaf_name)
            if other is None or not _agrees_with_itself(leaf.own, other):
                raise DrawsNumbers(
                    f"{name} draws random numbers, or keeps a state: evaluated twice on the same arguments, "
                    f"{leaf_name} differs; take the random numbers as an argument"
                )
        if all(are_identical(leaf.own, again[leaf_name]) for leaf_name, leaf in truth.leaves.items()):
            return


def _agrees_with_itself(first: Leaf, second: Leaf) -> bool:
    """Threads may sum in another order each time."""
    if first.values.shape != second.values.shape:
        return False
    if are_identical(first, second):
        return True
    if not first.is_inexact or not second.is_inexact:
        return bool(np.all(first.values == second.values))
    with np.errstate(all="ignore"):
        off = np.abs(in_float64(first.values) - in_float64(second.values))
        largest = float(np.max(np.abs(in_float64(first.values)), where=np.isfinite(first.values), initial=0.0))
    return not bool(np.any(off > _ORDERS_OF_SUMMING * UNIT_ROUNDOFF_OF_TYPE[first.kind] * largest))
