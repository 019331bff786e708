"""Whether a score changes more in one place than in another, from one contestant to a second one.

A change is the second one's score less the first one's over the same items. Changes in two places, such as those of a
group of items and of all others, are compared by Welch's test, or item by item where both places have the same items.

Where an item is right or wrong, two contestants often disagree about a handful of items alone, and then a standard
error is itself a matter of chance: with four disagreements that happen to go one way, Student's test is wrong in 12 %
of runs at a level of 5 %. So two items are added, one that either contestant alone is right about, as Agresti and Min
(2005) do with half as many. The claims are then about as rare as those of the exact sign test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.scores.resampled import standard_error_of
from fairlap.verdict.scores.student_difference import StudentDifference

_ADDED = 2


@dataclass(frozen=True)
class Change:
    """Of a score in one place, with its standard error."""

    difference: float
    standard_error: float
    degrees: float


@dataclass(frozen=True)
class UnequalChange(StudentDifference):
    """How much larger the change is in one place than in the other."""

    method: str


def change_of_shares(items: Floats) -> Change:
    """``items`` are -1 where the first contestant alone is right, 1 where the second is, else 0; or means of such."""
    count = len(items)
    difference = float(items.mean())
    squares = float(((items - difference) ** 2).sum()) + _ADDED
    return Change(difference, squares**0.5 / count, count + _ADDED - 1)


def change_resampled(difference: float, again: Floats, items: int) -> Change:
    """``again`` is the same difference over resampled items."""
    return Change(difference, standard_error_of(again, items), items - 1)


def unequal_change(one: Change, other: Change, method: str) -> UnequalChange:
    """Of places that have no item in common."""
    one_variance, other_variance = one.standard_error**2, other.standard_error**2
    variance = one_variance + other_variance
    degrees = one.degrees + other.degrees
    if variance > 0:
        degrees = variance**2 / (one_variance**2 / one.degrees + other_variance**2 / other.degrees)
    return UnequalChange(one.difference - other.difference, float(np.sqrt(variance)), degrees, method)
