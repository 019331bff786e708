"""Words and figures of a model's history: titles, sizes and causes of changes, and what no change is worth."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text
from fairlap.history.change_points import FEWEST_RUNS
from fairlap.history.changes import Change
from fairlap.history.model_history import ModelHistory, TrendHistory
from fairlap.history.trends import Trend
from fairlap.results.quantities.row_quantities import RowQuantity
from fairlap.scenarios.contract import of_time_ns

_DIGITS_OF_COMMIT = 10
_WALL = "wall"


def trend_title(trend: Trend) -> str:
    """All that is the same in all of its runs, and in no other trend."""
    if trend.foreign or trend.threads is None:
        return f"{trend.work} ({trend.machine}): {trend.quantity}, not by fairlap"
    threads = quantity_text.count(trend.threads, "thread")
    return f"{trend.work}, {trend.conditions}, {threads}, {trend.device} ({trend.machine}): {trend.quantity}"


def day(began_at: str) -> str:
    return began_at[:10] or "unknown date"


def listed(names: Sequence[str]) -> str:
    """Join names: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def figure_text(trend: Trend, compared: float) -> str:
    """``1.2 ms``, ``812/s`` or ``31.2 MiB``."""
    if trend.is_time:
        return quantity_text.figure(of_time_ns(compared, trend.unit), trend.unit)  # type: ignore[arg-type]
    if trend.unit == "B":
        return quantity_text.size(compared)
    if trend.unit == "share":
        return quantity_text.share(compared, 4)
    return quantity_text.quantity(compared, trend.unit) if trend.unit in ("J", "W") else _in_unit(compared, trend.unit)


def _in_unit(value: float, unit: str) -> str:
    return f"{quantity_text.number(value, 4)} {unit}".rstrip()


def ratio_head(trend: Trend) -> str:
    return "times the rate" if trend.is_rate else "times as long" if trend.is_time else "times as much"


def ratio_text(trend: Trend, change: Change) -> str:
    """With its interval, or how few runs it is from."""
    ratio, low, high = ratio_of(trend, change)
    few = "" if low is not None else f", no interval from {change.runs[0]} and {change.runs[1]} runs"
    return f"{quantity_text.ratio_interval(ratio, low, high)}{few}"


def ratio_of(trend: Trend, change: Change) -> tuple[float, float | None, float | None]:
    """With its interval, of times or of rates."""
    if not trend.is_rate:
        return change.ratio, change.low, change.high
    low, high = (None if end is None else 1 / end for end in (change.high, change.low))
    return 1 / change.ratio, low, high


def no_change_text(found: TrendHistory, history: ModelHistory) -> str:
    """Report that no change was found and which would have been, or that there are too few runs to find one."""
    most = max(len(series.points) for series in found.trend.asked(history.on))
    if most < FEWEST_RUNS:
        return f"too few runs to find a change in: {most} of {FEWEST_RUNS}"
    none = f"no change of {quantity_text.share(history.margin)} or more was found"
    steps = [
        f"{each.contestant} {quantity_text.share(each.ratio - 1)}"
        for each in found.smallest_steps
        if each.ratio is not None
    ]
    step = "slowdown" if found.trend.is_time else "growth"
    would = f"; the smallest {step} that would have been found three runs later: {listed(steps)}" if steps else ""
    return f"{none}{would}"


def subject_text(change: Change) -> str:
    old, new = change.versions
    if change.cause == "machine":
        return "the machine"
    versions = f" {old or 'unknown'} -> {new or 'unknown'}" if old != new else f" {new}" if new else ""
    return f"{change.contestants[0]}{versions}"


def cause_text(change: Change, foreign: str = "") -> str:
    if change.cause == "machine":
        return f"{listed(change.contestants)} moved together"
    if change.cause == "contestant":
        unchanged = ", its version did not change" if change.versions[0] == change.versions[1] else ""
        return f"compared with {listed(change.controls)} in the same runs{unchanged}"
    if foreign:
        return f"the machine or the code: {foreign} measured it alone"
    return "the machine or the contestant: no other contestant of these runs kept its version"


def commits_text(change: Change) -> str:
    """``1a2b3c4d5e..6f7a8b9c0d``; one of them where both runs were at the same; empty where one is unknown."""
    if not all(change.commits):
        return ""
    before, at = (commit[:_DIGITS_OF_COMMIT] for commit in change.commits)
    return at if before == at else f"{before}..{at}"


def bisect_command(change: Change, quantity: RowQuantity | None = None) -> str:
    """Give the command that finds the commit, where it may be one and is searched for by this quantity.

    The machine and another release have no commit in between.
    """
    before, at = change.commits
    if not (before and at) or before == at or change.cause == "machine" or change.versions[0] != change.versions[1]:
        return ""
    by = _WALL if quantity is None else quantity.bisected_as
    if not by:
        return ""
    ends = f"--good {before[:_DIGITS_OF_COMMIT]} --bad {at[:_DIGITS_OF_COMMIT]}"
    return f"fairlap bisect {ends}" if by == _WALL else f"fairlap bisect --quantity {by} {ends}"


def bisect_text(change: Change, quantity: RowQuantity | None = None) -> str:
    command = bisect_command(change, quantity)
    return f"{day(change.began_at)}, {change.contestants[0]}: `{command}` finds the commit" if command else ""
