"""What a callable should answer, from its reference in float64, and by how much rounding may move that.

How far rounding moves an answer is found from the reference itself: its arguments are moved by what their type rounds
away, a few times, in random directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import InvalidRequest, described
from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE
from fairlap.scenarios.callables.answers.allowed import Moving, TrueLeaf
from fairlap.scenarios.callables.answers.arrays import (
    Array,
    Deferred,
    Leaf,
    Leaves,
    NotComparable,
    answer_views,
    are_identical,
    leaves_of,
)
from fairlap.scenarios.callables.answers.drawn import changed, copy_of, float64_of, in_float64, leaves_of_arguments
from fairlap.scenarios.callables.answers.in_chunks import chunks, flat

Call = Callable[[Arguments], Any]  # of a callable that is complete when it returns

_MOVES = 3
_MANY = 2**18  # numbers, of which one move of each shows enough
_MOST_OPERATIONS = 2**24
_ORDERS_OF_SUMMING = 1000.0  # roundings by which a computation may differ from itself


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


def outcome_of(call: Call, arguments: Arguments) -> Outcome:
    """Call with a copy of the arguments."""
    given = copy_of(arguments)
    returned = call(given)
    return outcome_on(given, arguments, returned)


def outcome_on(given: Arguments, before: Arguments, returned: Any) -> Outcome:
    """``given`` are the arguments that a call has had, ``before`` equal ones that it has not."""
    answer = leaves_of(returned)
    after, first = leaves_of_arguments(given), leaves_of_arguments(before)
    differing = {name for name, leaf in after.items() if name not in first or not are_identical(leaf, first[name])}
    return Outcome(answer, after, frozenset(differing))


def truth_of(reference: Call, name: str, arguments: Arguments, seed: int = 0) -> Truth:
    """Evaluate the reference in its own type and in float64, and with arguments that are moved a little."""
    own = evaluated(reference, name, arguments)
    inexact = [leaf for leaf in leaves_of_arguments(arguments).values() if leaf.is_inexact]
    operations, inputs_roundoff = _operations(inexact), _roundoff_of(inexact)
    wide = _in_float64(reference, arguments, own) if inexact else None
    truths = own.answered if wide is None else wide
    with np.errstate(all="ignore"):
        moving = {leaf_name: Moving(leaf, truths.get(leaf_name, leaf)) for leaf_name, leaf in own.answered.items()}
        if inexact:
            moves = _Moves(reference, arguments, own, _accumulated(inputs_roundoff), in_float64=wide is not None)
            for number in range(1 + (_MOVES if operations < _MANY else 1)):
                moved = moves.answered(np.random.default_rng([seed, number]), upwards=not number) or truths
                for leaf_name in moving.keys() & moved.keys():
                    moving[leaf_name].moved_to(moved[leaf_name].values)
        leaves = {leaf_name: each.true_leaf(operations, inputs_roundoff) for leaf_name, each in moving.items()}
    return Truth(leaves, own.changed, wide is not None)


def evaluated(reference: Call, name: str, arguments: Arguments) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return outcome_of(reference, arguments)
    except (InvalidRequest, NotComparable, Deferred):
        raise
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"the reference {name} raised {described(error)}", code="E_REFERENCE") from error


def _in_float64(reference: Call, arguments: Arguments, own: Outcome) -> Leaves | None:
    """None where the reference cannot, or answers in a type of its own all the same."""
    given = changed(arguments, in_float64)
    try:
        with np.errstate(all="ignore"):
            found = leaves_of(reference(given)) | _changed_like(own, given)
    except (Exception, SystemExit):
        return None
    if set(found) != set(own.answered):
        return None
    for name, leaf in own.answered.items():
        wide = found[name]
        if wide.values.shape != leaf.values.shape or (leaf.is_inexact and wide.kind not in ("float64", "complex128")):
            return None
    return found


def _changed_like(own: Outcome, arguments: Arguments) -> Leaves:
    """Find the arguments, which nobody else has, that the reference changes."""
    if not own.changed:
        return {}
    leaves = leaves_of_arguments(arguments)
    return {name: leaves[name] for name in own.changed}


@dataclass(frozen=True)
class _Moves:
    """The reference on arguments that are moved by their rounding."""

    reference: Call
    arguments: Arguments
    own: Outcome
    roundoff: float
    in_float64: bool

    def answered(self, rng: np.random.Generator, *, upwards: bool) -> Leaves:
        """Move all upwards, or each at random. Answers are where the reference left them; none if it cannot."""
        try:
            given = changed(self.arguments, lambda values: self._moved(values, rng, upwards=upwards))
            return answer_views(self.reference(given)) | _changed_like(self.own, given)
        except (Exception, SystemExit):
            return {}

    def _moved(self, values: Array, rng: np.random.Generator, *, upwards: bool) -> Array:
        if self.in_float64 and values.dtype.kind not in "fc":
            values = in_float64(values)
        if values.dtype.kind not in "fc":
            return np.array(values)
        found = np.empty(values.shape, float64_of(values) if self.in_float64 else values.dtype)
        step = max(self.roundoff, 2 * UNIT_ROUNDOFF_OF_TYPE.get(found.dtype.name, 0.0))  # less would round away again
        given, moved = flat(values), flat(found)
        bits = None if upwards else np.frombuffer(rng.bytes(-(-moved.size // 8)), np.uint8)
        signs = None if bits is None else np.unpackbits(bits, count=moved.size)
        for part in chunks(moved.size):
            if signs is None:
                moved[part] = given[part].astype(found.dtype) * (1.0 + step)
            else:
                factors = np.where(signs[part], 1.0 + step, 1.0 - step)
                np.multiply(given[part], factors, out=moved[part], casting="same_kind")
        return found


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
    """Evaluate it once more on the same arguments."""
    again = evaluated(reference, name, arguments)
    for leaf_name, leaf in truth.leaves.items():
        other = again.answered.get(leaf_name)
        if other is None or not _agrees_with_itself(leaf.own, other):
            raise DrawsNumbers(
                f"{name} draws random numbers, or keeps a state: evaluated twice on the same arguments, {leaf_name} "
                "differs; take the random numbers as an argument"
            )


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
