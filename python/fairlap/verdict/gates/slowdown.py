"""Is one side slower than another by more than is allowed? One rule for every gate, read off the shown interval.

The whole interval is above the bound: the slowdown is shown to be larger. The whole interval is below it: it is shown
to be smaller, if there is one. The bound is inside: undecided. Where the true slowdown is exactly the bound, the first
and the second happen in at most half of the interval's level each, 2.5 % of races, where the race knew the bound or had
a fixed number of blocks. For a bound given afterwards, to a race that ended when it was decided, that is simulated and
not guaranteed. The rate is of each comparison, and not of several candidates together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from fairlap.verdict.blocks import require_between
from fairlap.verdict.comparison import Comparison
from fairlap.verdict.exact_tests.signed_rank import ROUNDING

MAX_SLOWDOWN = 0.02


class Slowdown(Enum):
    """What an interval shows about a bound."""

    EXCEEDED = "exceeded"
    WITHIN = "within"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Gate:
    """The question of a race: whether a contestant is slower than the baseline by more than this share."""

    baseline: str
    max_slowdown: float = MAX_SLOWDOWN

    def __post_init__(self) -> None:
        require_between("max_slowdown", self.max_slowdown, 0.0, math.inf)


def slowdown(low: float, high: float, max_slowdown: float) -> Slowdown:
    """Of an interval for how many times as long the candidate takes. A bound that it touches is inside."""
    bound = 1 + max_slowdown
    if low > bound * (1 + ROUNDING):
        return Slowdown.EXCEEDED
    return Slowdown.WITHIN if high < bound * (1 - ROUNDING) else Slowdown.UNDECIDED


def slowdown_of(comparison: Comparison, max_slowdown: float) -> Slowdown:
    """Of the first of the two against the second."""
    _, low, high = times_as_long(comparison)
    return slowdown(low, high, max_slowdown)


def times_as_long(comparison: Comparison) -> tuple[float, float, float]:
    """How many times as long the first of the two takes, with the interval."""
    if comparison.metric.better == "higher":
        inverse = comparison.interval.inverse()
        return 1 / comparison.ratio, inverse.low, inverse.high
    return comparison.ratio, comparison.interval.low, comparison.interval.high
