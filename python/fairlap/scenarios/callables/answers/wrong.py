"""Whether an answer is right, and how it is wrong."""

from __future__ import annotations

import numpy as np

from fairlap.errors import shortened
from fairlap.models.spec import UNIT_ROUNDOFF_OF_TYPE
from fairlap.scenarios.callables.answers.arrays import Array, Leaf
from fairlap.scenarios.callables.answers.drawn import ARGUMENT, in_float64
from fairlap.scenarios.callables.answers.right_answers.allowed import TrueLeaf
from fairlap.scenarios.callables.answers.right_answers.in_chunks import are_within
from fairlap.scenarios.callables.answers.right_answers.truth import Outcome, Truth


def why_outcome_wrong(truth: Truth, outcome: Outcome) -> str:
    """Empty if all is right."""
    answered = outcome.answered
    if missing := [name for name in truth.leaves if name not in answered]:
        return f"{missing[0]} is {'left as it was' if missing[0].startswith(ARGUMENT) else 'missing'}"
    if more := [name for name in answered if name not in truth.leaves]:
        return f"{more[0]} is more than was asked for"
    return next((why for name, leaf in truth.leaves.items() if (why := why_wrong(name, leaf, answered[name]))), "")


def why_wrong(name: str, true: TrueLeaf, got: Leaf) -> str:
    """Empty if it is right."""
    if got.values.shape != true.own.values.shape:
        return f"{name} has the shape {list(got.values.shape)}, not {list(true.own.values.shape)}"
    if true.allowed is None:
        return _why_unequal(name, true, got)
    if not got.is_inexact and got.values.dtype.kind not in "iub":
        return f"{name} is of the type {got.kind}, not {true.own.kind}"
    if got.is_inexact and got.values.dtype.kind == "c" and true.values.dtype.kind != "c":
        return f"{name} is of the type {got.kind}, not {true.own.kind}"
    if got.is_inexact and UNIT_ROUNDOFF_OF_TYPE[got.kind] > true.roundoff:
        return f"{name} is of the type {got.kind}, which is less exact than what is asked for"
    with np.errstate(all="ignore"):
        if true.stable is None and are_within(got.values, true.values, true.allowed):
            return ""
        stable = np.ones(true.values.shape, bool) if true.stable is None else true.stable
        values = in_float64(got.values).astype(true.values.dtype)
        off = np.abs(values - true.values)
        wrong = np.where(stable, ~(off <= true.allowed), False)
        wrong |= ~stable & ~_same_infinity(values, true)
    if not wrong.any():
        return ""
    place = _worst(np.where(wrong, np.nan_to_num(off, nan=np.inf), -1.0))
    found = f"{values[place]:.6g} instead of {true.values[place]:.6g}"
    return f"{_how_many(name, wrong, place)} off by more than rounding allows: {found}"


def _how_many(name: str, wrong: Array, place: tuple[int, ...]) -> str:
    if wrong.size == 1:
        return f"{name} is"
    return f"{int(wrong.sum()):,} of {wrong.size:,} elements of {name} are, such as {list(place)},"


def _same_infinity(values: Array, true: TrueLeaf) -> Array:
    """Where the truth is infinite or no number in the reference's own type or in float64, so must the answer be."""
    own = in_float64(true.own.values)
    found: Array = np.zeros(values.shape, bool)
    for expected in (own, true.values):
        found |= (np.isnan(values) & np.isnan(expected)) | (values == expected)
    return found


def _worst(off: Array) -> tuple[int, ...]:
    return tuple(int(each) for each in np.unravel_index(int(np.argmax(off)), off.shape))


def _why_unequal(name: str, true: TrueLeaf, got: Leaf) -> str:
    if (got.values.dtype.kind in "US") != (true.own.values.dtype.kind in "US"):
        return f"{name} is of the type {got.kind}, not {true.own.kind}"
    right = np.asarray(got.values == true.own.values) | np.asarray(got.values == true.values)
    if true.stable is not None:
        right |= ~true.stable
    if right.all():
        return ""
    place = _worst(np.where(right, 0.0, 1.0))
    found, expected = (shortened(str(each[place]), 40) for each in (got.values, true.own.values))
    return f"{_how_many(name, ~right, place)} not equal: {found} instead of {expected}"
