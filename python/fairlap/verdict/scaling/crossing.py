"""Where the curves of two contestants cross.

A crossing lies between the last size at which one is shown to be faster and the first at which the other is.

The verdicts of all sizes share one error rate, so a crossing that is claimed lies between its two sizes as surely as
both verdicts hold. Sizes between them that are not decided, or equivalent, narrow nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlap.verdict.comparison import Comparison, Verdict


@dataclass(frozen=True)
class Crossing:
    """``faster_below`` is faster up to ``low``, ``faster_above`` from ``high`` on."""

    faster_below: str
    faster_above: str
    low: float
    high: float


def crossings(sizes: Sequence[float], comparisons: Sequence[Comparison | None]) -> tuple[Crossing, ...]:
    """``comparisons`` are of one pair, one at each size, None where the pair was not compared there."""
    found: list[Crossing] = []
    last: tuple[str, str, float] | None = None
    for size, comparison in sorted(zip(sizes, comparisons, strict=True), key=lambda each: each[0]):
        if (shown := _faster_and_slower(comparison)) is None:
            continue
        if last is not None and last[0] == shown[1]:
            found.append(Crossing(last[0], shown[0], last[2], size))
        last = (*shown, size)
    return tuple(found)


def _faster_and_slower(comparison: Comparison | None) -> tuple[str, str] | None:
    if comparison is None:
        return None
    if comparison.verdict is Verdict.FASTER:
        return comparison.a, comparison.b
    return (comparison.b, comparison.a) if comparison.verdict is Verdict.SLOWER else None
