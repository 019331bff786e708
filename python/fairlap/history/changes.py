"""Changes in a trend: when, how large, between which versions, and whether the contestant changed or the machine.

Contestants of one run took turns, so what slows the machine slows all of them. A contestant's own change is therefore
looked for in its times without the drift of the others, and a change that all share is the machine's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from fairlap.history.change_points import FEWEST_RUNS, LEAST_AFTER, change_points
from fairlap.history.machine_drift import Control, machine_drift
from fairlap.history.trends import Series, Trend
from fairlap.machine.differences import comparable_facts, differences
from fairlap.verdict.gates.regression import rank_sum_differences, rank_sum_interval

Floats = npt.NDArray[np.float64]
Cause = Literal["contestant", "machine", "unknown"]

_LEVEL = 0.05
_MOST_RUNS_COMPARED = 40
_MOSTLY = 0.5
_ALONE = 2
_FIRST_STEP, _LARGEST_STEP = 0.01, 10.0  # of the logarithm
_CLOSE = 0.01  # to the smallest step that is found
_EXACT = 0.001  # of the logarithm: the noise of quantities that may be equal to the byte in all runs


@dataclass(frozen=True)
class Change:
    """A change of level, at the first run after it."""

    work: str
    conditions: str
    machine: str
    contestants: tuple[str, ...]  # all that moved, where it is the machine
    cause: Cause
    began_at: str
    run: str
    run_before: str
    versions: tuple[str, str]  # of the contestant, before and after; empty for the machine
    ratio: float  # after by before
    low: float | None  # 95 %; None where there are too few runs for an interval
    high: float | None
    runs: tuple[int, int]  # that the ratio is from
    controls: tuple[str, ...]  # contestants of the same runs that did not change
    facts: tuple[str, ...]  # of the machine and its software that differ between the two runs
    commits: tuple[str, str]  # of the working folder in the run before and in this one; empty where none was known


@dataclass(frozen=True)
class SmallestStep:
    """What no change found in a series is worth: steps from this one on would have been found in it."""

    contestant: str
    ratio: float | None  # three runs after the step; None where there are too few runs


def smallest_steps(trend: Trend, changes: Sequence[Change], *, on: str = "", margin: float = 0.0) -> list[SmallestStep]:
    """Of the contestants without a change."""
    place = {run: at for at, run in enumerate(trend.runs)}
    moved = {name for change in changes for name in change.contestants}
    series = [each for each in trend.asked(on) if each.contestant not in moved]
    edge, least = float(np.log1p(margin)), _least_noise(trend)
    found = [_smallest_step(_own(trend, each, place)[1], edge, least) for each in series]
    return [
        SmallestStep(each.contestant, None if step is None else float(np.exp(step)))
        for each, step in zip(series, found, strict=True)
    ]


def _smallest_step(logs: Floats, edge: float, least_noise: float) -> float | None:
    """Find the smallest detectable step by planting steps in the series, each with enough runs after it."""
    if logs.size < FEWEST_RUNS:
        return None
    at = logs.size - LEAST_AFTER

    def is_found(step: float) -> bool:
        planted = logs.copy()
        planted[at:] += step
        return any(
            abs(before.stop - at) <= 1 and _shift(planted[before], planted[after])[0] >= edge
            for before, after in _segments(change_points(planted, least_noise=least_noise), planted.size)
        )

    low, high = 0.0, _FIRST_STEP
    while not is_found(high):
        low, high = high, 2 * high
        if high > _LARGEST_STEP:
            return None
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high


def changes_in(
    trend: Trend, machines: Mapping[str, Mapping[str, str]], *, on: str = "", margin: float = 0.0
) -> list[Change]:
    """In the order of the runs. Changes smaller than the margin are left out."""
    place = {run: at for at, run in enumerate(trend.runs)}
    found = [change for series in trend.asked(on) for change in _of_contestant(trend, series, place)]
    of_machine = _of_machine(trend, place)
    if not trend.is_time:
        found = [each for each in found if not _is_one_of(each, of_machine, place)]
    found += of_machine
    edge = float(np.log1p(margin))
    large = [each for each in found if abs(np.log(each.ratio)) >= edge]
    with_facts = [
        replace(each, facts=_facts(trend, each, machines), commits=_commits(each, machines)) for each in large
    ]
    return sorted(with_facts, key=lambda each: each.run)


def _is_one_of(change: Change, of_machine: Sequence[Change], place: Mapping[str, int]) -> bool:
    """Whether it is what all contestants did together."""
    return any(
        abs(place[change.run] - place[each.run]) <= 1 and change.contestants[0] in each.contestants
        for each in of_machine
    )


def _least_noise(trend: Trend) -> float:
    return 0.0 if trend.is_time else _EXACT


def _of_contestant(trend: Trend, series: Series, place: Mapping[str, int]) -> list[Change]:
    runs, logs, controlled = _own(trend, series, place)
    others = [each for each in trend.series if each is not series]
    points = {place[each.run]: each for each in series.points}
    found = []
    for before, after in _segments(change_points(logs, least_noise=_least_noise(trend)), logs.size):
        at, last = int(runs[after.start]), int(runs[before.stop - 1])
        unchanged = _unchanged(others, trend.runs[last], trend.runs[at]) if controlled else ()
        found.append(
            _change(
                trend,
                logs[before],
                logs[after],
                (last, at),
                contestants=(series.contestant,),
                cause="contestant" if unchanged else "unknown",
                versions=(points[last].version, points[at].version),
                controls=unchanged,
            )
        )
    return found


def _own(trend: Trend, series: Series, place: Mapping[str, int]) -> tuple[npt.NDArray[np.intp], Floats, bool]:
    """Place a contestant's runs and figures, of times without the drift of the others where these took part in most.

    What slows a machine makes no contestant larger, so of other quantities a change of one is none of the others.
    """
    runs, logs = _placed(series, place)
    others = [each for each in trend.series if each is not series]
    drift = machine_drift(_controls(others, place), len(place))[runs]
    accompanied = np.isfinite(drift)
    if not trend.is_time:
        return runs, logs, bool(accompanied.mean() > _MOSTLY)
    if bool(accompanied.mean() > _MOSTLY):
        return runs[accompanied], (logs - drift)[accompanied], True
    return runs, logs, False


def _of_machine(trend: Trend, place: Mapping[str, int]) -> list[Change]:
    """Where every contestant whose version did not change moved in the same direction, and there are two at least."""
    drift = machine_drift(_controls(trend.series, place), len(place))
    runs = np.flatnonzero(np.isfinite(drift))
    found = []
    for before, after in _segments(change_points(drift[runs], least_noise=_least_noise(trend)), runs.size):
        last, at = int(runs[before.stop - 1]), int(runs[after.start])
        moved = _moved_together(trend, place, runs[before], runs[after], (last, at))
        if moved:
            found.append(
                _change(
                    trend, drift[runs[before]], drift[runs[after]], (last, at),
                    contestants=moved, cause="machine", versions=("", ""), controls=(),
                )
            )  # fmt: skip
    return found


def _moved_together(
    trend: Trend, place: Mapping[str, int], before: npt.NDArray[np.intp], after: npt.NDArray[np.intp],
    border: tuple[int, int],
) -> tuple[str, ...]:  # fmt: skip
    """All contestants of one version on both sides, if each moved clearly and in the same direction; else none."""
    unchanged = _unchanged(trend.series, trend.runs[border[0]], trend.runs[border[1]])
    directions = set()
    for series in trend.series:
        if series.contestant in unchanged:
            runs, logs = _placed(series, place)
            old, new = logs[np.isin(runs, before)], logs[np.isin(runs, after)]
            _, low, high = _shift(old, new)
            directions.add("slower" if low > 0 else "faster" if high < 0 else "unclear")
    return unchanged if len(unchanged) >= _ALONE and directions in ({"slower"}, {"faster"}) else ()


def _change(
    trend: Trend, old: Floats, new: Floats, border: tuple[int, int], *,
    contestants: tuple[str, ...], cause: Cause, versions: tuple[str, str], controls: tuple[str, ...],
) -> Change:  # fmt: skip
    shift, low, high = _shift(old, new)
    bounded = bool(np.isfinite(low))
    last, at = border
    return Change(
        work=trend.work,
        conditions=trend.conditions,
        machine=trend.machine,
        contestants=contestants,
        cause=cause,
        began_at=_began_at(trend, trend.runs[at]),
        run=trend.runs[at],
        run_before=trend.runs[last],
        versions=versions,
        ratio=float(np.exp(shift)),
        low=float(np.exp(low)) if bounded else None,
        high=float(np.exp(high)) if bounded else None,
        runs=(min(old.size, _MOST_RUNS_COMPARED), min(new.size, _MOST_RUNS_COMPARED)),
        controls=controls,
        facts=(),
        commits=("", ""),
    )


def _shift(old: Floats, new: Floats) -> tuple[float, float, float]:
    """Hodges and Lehmann's estimate with the exact interval of the rank sum test, from the runs next to the change."""
    old, new = old[-_MOST_RUNS_COMPARED:], new[:_MOST_RUNS_COMPARED]
    if not (old.size and new.size):
        return 0.0, -np.inf, np.inf
    every = rank_sum_differences(new, old)
    return float(np.median(every)), *rank_sum_interval(every, new.size, old.size, _LEVEL)


def _segments(points: Sequence[int], size: int) -> list[tuple[slice, slice]]:
    """Pair the runs before and after each change, as far as the changes next to it."""
    edges = [0, *points, size]
    slices = [slice(start, end) for start, end in pairwise(edges)]
    return list(pairwise(slices))


def _placed(series: Series, place: Mapping[str, int]) -> tuple[npt.NDArray[np.intp], Floats]:
    runs = np.array([place[each.run] for each in series.points], dtype=np.intp)
    return runs, np.log([each.compared.value for each in series.points])


def _controls(series: Sequence[Series], place: Mapping[str, int]) -> list[Control]:
    """Make a control of each version of each contestant, since another version may have another level."""
    found = []
    for each in series:
        runs, logs = _placed(each, place)
        versions = np.array([point.version for point in each.points])
        for version in np.unique(versions):
            own = versions == version
            found.append(Control((each.contestant, str(version)), runs[own], logs[own]))
    return found


def _unchanged(series: Sequence[Series], before: str, after: str) -> tuple[str, ...]:
    """Contestants that took part with the same version up to this run and from that run on."""
    found = []
    for each in series:
        earlier = [point.version for point in each.points if point.run <= before]
        later = [point.version for point in each.points if point.run >= after]
        if earlier and later and earlier[-1] == later[0]:
            found.append(each.contestant)
    return tuple(found)


def _began_at(trend: Trend, run: str) -> str:
    return next(point.began_at for each in trend.series for point in each.points if point.run == run)


def _facts(trend: Trend, change: Change, machines: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    old, new = machines.get(change.run_before, {}), machines.get(change.run, {})
    return tuple(str(each) for each in differences(*comparable_facts(old, new, trend.device)))


def _commits(change: Change, machines: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    before, at = (machines.get(run, {}).get("git revision", "") for run in (change.run_before, change.run))
    return before, at
