"""How many calls a sample of each callable has, so that what it costs besides them is the same for equal callables.

The warm-up chooses by five samples. Where one of them loses its core for longer than all five may take, it seems long
enough, and for the whole comparison this one callable then has too few calls in a sample: what reading the clock costs
is part of each of its figures, and of no other's. Equal functions of 9 ns differed by up to 38 % that way, and by 0.5 %
where one had half as many calls as the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlap.engine import _native
from fairlap.engine.timed_calls import FLOOR_MULTIPLE

_ALIKE = 2.0  # times as long
_MOST_CALLS = 2**24


def calls_instead(calls: int, median_ns: float, clock: _native.Clock) -> int | None:
    """Find how many calls are enough where samples are much shorter than they should be; None where they are not."""
    least_ns = FLOOR_MULTIPLE * (clock.quantum_ns + clock.overhead_ns)
    if not 0 < calls * median_ns < least_ns / 2:
        return None
    return min(_MOST_CALLS, 1 << max(0, math.ceil(math.log2(least_ns / median_ns))))


def even_calls(calls: Sequence[int], medians_ns: Sequence[float]) -> list[int]:
    """Give callables that take about as long the same number, the largest of theirs."""
    return [
        max(own, *(other for other, other_ns in zip(calls, medians_ns, strict=True) if _alike(median_ns, other_ns)), 1)
        for own, median_ns in zip(calls, medians_ns, strict=True)
    ]


def _alike(first_ns: float, second_ns: float) -> bool:
    return first_ns <= _ALIKE * second_ns and second_ns <= _ALIKE * first_ns
