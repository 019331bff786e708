"""Time against error over precisions: which contestants no other one beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairlap.request.work import Precision, Work
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult


@dataclass(frozen=True)
class Point:
    contestant: str
    precision: Precision
    time_ns: float
    error: float  # relative, of its worst answer
    qualified: bool  # ranked, by --max-drop too
    on_frontier: bool = False


def points_of(shown: Results, work_result: WorkResult) -> list[Point]:
    """Place the contestants of all precisions on this model, mode and batch, under the same conditions."""
    found = []
    for other in shown.work_results:
        if _subject(other.work) != _subject(work_result.work) or other.conditions != work_result.conditions:
            continue
        for result, row in other.with_rows():
            if row.judged is not None and row.error_relative:
                error, ranked = row.error_relative, result.ranked
                found.append(Point(result.contestant, row.precision, result.median_ns, error, qualified=ranked))
    return with_frontier(found)


def with_frontier(points: Sequence[Point]) -> list[Point]:
    """Mark the points for which no qualified one is as quick and as exact, and better in one of the two.

    Errors of fp32 are those of rounding in another order: up to the largest of them, none is better than another.
    """
    rounding = max((each.error for each in points if each.precision == "fp32" and each.qualified), default=0.0)

    def beats(one: Point, other: Point) -> bool:
        mine, theirs = max(one.error, rounding), max(other.error, rounding)
        better = one.time_ns < other.time_ns or mine < theirs
        return one.time_ns <= other.time_ns and mine <= theirs and better

    qualified = [each for each in points if each.qualified]
    return [
        replace(each, on_frontier=each.qualified and not any(beats(other, each) for other in qualified))
        for each in points
    ]


def _subject(work: Work) -> Work:
    return work.in_precision("fp32")
