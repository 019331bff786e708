"""What a callable should answer, from its reference in float64, and by how much rounding may move that.

A right computation rounds after every operation. How far that moves an answer is found from the reference itself: its
arguments are moved by what their type rounds away, a few times, in random directions. A sum of n numbers adds the
rounding of n operations, which grows as the square root of n; so may an answer be off. What the reference errs by in
its own type, and the rounding of the answer, come on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap.engine.calls_in_turns import Arguments
from fairlap.errors import InvalidRequest, described
from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE
from fairlap.scenarios.callables.answers.arrays import (
    SMALLEST_NORMAL,
    Array,
    Deferred,
    Leaf,
    Leaves,
    NotComparable,
    are_identical,
    leaves_of,
)
from fairlap.scenarios.callables.answers.drawn import changed, copy_of, in_float64, leaves_of_arguments

Call = Callable[[Arguments], Any]  # of a callable that is complete when it returns

_MOVES = 3
_MANY = 2**18  # numbers, of which one move of each shows enough
_FEWEST_OPERATIONS = 64  # a function such as exp rounds a few times, even of a single number
_MOST_OPERATIONS = 2**24
_UNKNOWN_OPERATIONS = 2**20
_OPERATIONS_ROUNDED = 4.0  # of the answer itself, such as a product with a scale at the end
_PLAIN = 4.0  # times as far off as the reference in its own type
_LEAST_MOVED = 0.05  # of the usual: a single element may be moved by nothing, by chance
_ORDERS_OF_SUMMING = 1000.0  # roundings by which a computation may differ from itself
_TINY = 4.0  # smallest normal numbers, which some units take for 0


class DrawsNumbers(InvalidRequest):
    code = "E_SOURCE_RANDOM"


@dataclass(frozen=True)
class TrueLeaf:
    """``allowed`` is the largest right distance from ``values``, element by element; None where they must be equal.

    ``own`` is what the reference answers in its own type. Elements that are not ``stable`` change when the arguments
    are moved by their rounding, so that they prove nothing.
    """

    values: Array
    own: Leaf
    allowed: Array | None
    stable: Array
    roundoff: float = 0.0  # of the type that is asked for


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
        return any(leaf.stable.any() and np.any(leaf.own.values != _zero_of(leaf.own)) for leaf in self.leaves.values())


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


def _outcome_like(own: Outcome, reference: Call, arguments: Arguments) -> Outcome:
    """Call with arguments that nobody else has, of which it changes the same."""
    with np.errstate(all="ignore"):
        answer = leaves_of(reference(arguments))
    return Outcome(answer, leaves_of_arguments(arguments) if own.changed else {}, own.changed)


def truth_of(reference: Call, name: str, arguments: Arguments, seed: int = 0) -> Truth:
    """Evaluate the reference in its own type and in float64, and with arguments that are moved a little."""
    own = evaluated(reference, name, arguments)
    wide, moved = own, list[Outcome]()
    in_wide = False
    inexact = [leaf for leaf in leaves_of_arguments(arguments).values() if leaf.is_inexact]
    operations = _operations(inexact)
    inputs_roundoff = _roundoff_of(inexact)
    if inexact:
        found = _in_float64(reference, arguments, own)
        in_wide = found is not None
        wide = found or own
        exact = changed(arguments, in_float64) if in_wide else arguments
        step, moves = _accumulated(inputs_roundoff), _MOVES if operations < _MANY else 1
        moved = [_moved(reference, exact, step, wide, seed, number) for number in range(moves + 1)]
    leaves = {}
    for leaf_name, leaf in own.answered.items():
        others = [each.answered[leaf_name] for each in moved if leaf_name in each.answered]
        truth = wide.answered.get(leaf_name, leaf)
        leaves[leaf_name] = _true_leaf(leaf, truth, others, operations, inputs_roundoff)
    return Truth(leaves, own.changed, in_wide)


def evaluated(reference: Call, name: str, arguments: Arguments) -> Outcome:
    try:
        with np.errstate(all="ignore"):
            return outcome_of(reference, arguments)
    except (InvalidRequest, NotComparable, Deferred):
        raise
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"the reference {name} raised {described(error)}", code="E_REFERENCE") from error


def _in_float64(reference: Call, arguments: Arguments, own: Outcome) -> Outcome | None:
    """None where the reference cannot, or answers in a type of its own all the same."""
    try:
        found = _outcome_like(own, reference, changed(arguments, in_float64))
    except (Exception, SystemExit):
        return None
    if set(found.answered) != set(own.answered):
        return None
    for name, leaf in own.answered.items():
        wide = found.answered[name]
        if wide.values.shape != leaf.values.shape or (leaf.is_inexact and wide.kind not in ("float64", "complex128")):
            return None
    return found


def _moved(reference: Call, exact: Arguments, roundoff: float, otherwise: Outcome, seed: int, number: int) -> Outcome:
    """Move the arguments by their rounding: all upwards in the first draw, each at random in the others."""
    rng = np.random.default_rng([seed, number])

    def move(values: Array) -> Array:
        if values.dtype.kind not in "fc":
            return np.array(values)
        step = max(roundoff, 2 * UNIT_ROUNDOFF_OF_TYPE.get(values.dtype.name, 0.0))  # less would round away again
        if not number:
            return (values * (1.0 + step)).astype(values.dtype)
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-values.size // 8)), np.uint8), count=values.size)
        factors = np.where(bits.reshape(values.shape), 1.0 + step, 1.0 - step)
        return (values * factors).astype(values.dtype)

    try:
        return _outcome_like(otherwise, reference, changed(exact, move))
    except (Exception, SystemExit):
        return otherwise


def _true_leaf(own: Leaf, truth: Leaf, moved: list[Leaf], operations: int, inputs_roundoff: float) -> TrueLeaf:
    alike = [each.values for each in moved if each.values.shape == truth.values.shape]
    if not own.is_inexact or not truth.is_inexact:
        stable = np.ones(own.values.shape, bool)
        for each in alike:
            stable &= np.asarray(each == truth.values)
        return TrueLeaf(truth.values, own, None, stable)
    with np.errstate(all="ignore"):
        roundoff = _answer_roundoff(own, inputs_roundoff)
        wide = in_float64(truth.values)
        stable = np.isfinite(wide) & np.isfinite(own.values)
        sizes = _where(stable, _sizes(wide))
        spread = np.zeros(wide.shape)
        for each in alike:
            np.maximum(spread, _where(stable, _distance(each, wide)), out=spread)
        if not np.isfinite(spread).all():
            spread = np.nan_to_num(spread, nan=np.inf)
        if roundoff == UNIT_ROUNDOFF_OF_TYPE["float64"]:  # in which a move by one rounding may round away again
            np.maximum(spread, 2 * roundoff * sizes, out=spread)
        if not moved:  # the callable's own numbers, of which nothing is known
            operations = _UNKNOWN_OPERATIONS
            spread = np.full(wide.shape, roundoff * float(np.max(sizes, initial=0.0)))
        err = _where(stable, _distance(own.values, wide))
        allowed = np.maximum(spread, _LEAST_MOVED * _usual(spread))
        allowed *= math.sqrt(max(operations, _FEWEST_OPERATIONS))
        allowed += _PLAIN * np.maximum(err, _usual(err))
        allowed += _OPERATIONS_ROUNDED * roundoff * np.maximum(sizes, _usual(sizes))  # small ones are often differences
        allowed += _TINY * SMALLEST_NORMAL[own.kind]
    return TrueLeaf(wide, own, allowed, stable, roundoff)


def _where(stable: Array, values: Array) -> Array:
    """Set the others to 0, in place."""
    if not stable.all():
        np.copyto(values, 0.0, where=~stable)
    return values


def _distance(values: Array, wide: Array) -> Array:
    return _sizes(np.subtract(values if values.dtype.kind in "fc" else in_float64(values), wide))


def _sizes(values: Array) -> Array:
    return np.abs(values, out=np.empty(np.shape(values)))


def _usual(values: Array) -> float:
    """Compute the root of the mean square of those that are finite."""
    if math.isfinite(squares := float(np.square(values).sum())):
        return math.sqrt(squares / values.size) if values.size else 0.0
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


def _answer_roundoff(own: Leaf, inputs_roundoff: float) -> float:
    """Choose the type of the arguments where the reference computes in float64 what callables answer in theirs."""
    roundoff = UNIT_ROUNDOFF_OF_TYPE[own.kind]
    return max(roundoff, inputs_roundoff) if roundoff == UNIT_ROUNDOFF_OF_TYPE["float64"] else roundoff


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
    if not first.is_inexact or not second.is_inexact:
        return bool(np.all(first.values == second.values))
    with np.errstate(all="ignore"):
        off = np.abs(in_float64(first.values) - in_float64(second.values))
        largest = float(np.max(np.abs(in_float64(first.values)), where=np.isfinite(first.values), initial=0.0))
    return not bool(np.any(off > _ORDERS_OF_SUMMING * UNIT_ROUNDOFF_OF_TYPE[first.kind] * largest))
