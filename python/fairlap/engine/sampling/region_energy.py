"""The energy of a stretch of time, as the interval that the readings of one sensor support, or why it is unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.engine._native import Readings, ReadingState
from fairlap.engine.sampling.joules import Energy

_LONGEST_GAP_NS = 1_000_000_000  # between readings; a longer one hides too much
_FEWEST_READINGS = 1  # inside the region

Rows = npt.NDArray[np.void]  # readings of one field, in order of time
Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class Unresolved(Exception):
    """The reason why a region cannot be judged."""


@dataclass(frozen=True)
class CounterSteps:
    """Each rise of a counter: after the reading before it and not after the reading that showed it."""

    after_ns: Times
    seen_ns: Times
    joules: Values  # from here on

    @property
    def middle_ns(self) -> Times:
        return self.after_ns + (self.seen_ns - self.after_ns) // 2


def rows_of(readings: Readings, source: int, field: int) -> Rows:
    """Select the readings of one field, failed ones too."""
    table = np.asarray(readings)
    rows: Rows = table[(table["source"] == source) & (table["field"] == field)]
    return rows


def energy_of_power(
    rows: Rows,
    begin_ns: int,
    end_ns: int,
    *,
    gain_share: float = 0.0,
    stale_ns: int = 0,
    period_ns: int = 0,
    window_ns: int = 0,
) -> Energy:
    """Integrate watts as a straight line between readings, cut at the region's bounds.

    Between two readings power is taken to be between their values. All readings may be wrong alike by
    ``gain_share``, and their values be old by ``stale_ns``. A sensor that looks for ``window_ns`` in every
    ``period_ns`` may miss a short region, which is then unresolved.
    """
    try:
        times_ns, watts = points_around(rows, begin_ns, end_ns)
    except Unresolved as unresolved:
        return Energy(None, None, None, str(unresolved), 0)
    inside = _count_inside(times_ns, begin_ns, end_ns)
    first, last = np.searchsorted(times_ns, begin_ns, "right") - 1, np.searchsorted(times_ns, end_ns, "left")
    times_ns, watts = times_ns[first : last + 1], watts[first : last + 1]
    on_line = watts.copy()
    on_line[[0, -1]] = np.interp([0, end_ns - begin_ns], times_ns - begin_ns, watts)
    seconds = np.diff(np.clip(times_ns, begin_ns, end_ns)).astype(np.float64) * 1e-9
    joules = float((on_line[:-1] + on_line[1:]) / 2 @ seconds)
    low_j = float(np.minimum(watts[:-1], watts[1:]) @ seconds)
    high_j = float(np.maximum(watts[:-1], watts[1:]) @ seconds)
    # A reading may show power up to ``stale_ns`` earlier: the integral is then one of a region moved by as much,
    # which differs by no more than the range of power over that time.
    moved_j = float(np.ptp(watts)) * stale_ns * 1e-9
    gaps_ns = np.diff(times_ns)
    reason = ""
    if gaps_ns.max() > _LONGEST_GAP_NS:
        gap_ns = int(gaps_ns[gaps_ns > _LONGEST_GAP_NS][0])
        reason = f"there is a gap of {_milliseconds(gap_ns)} between readings"
    elif end_ns - begin_ns + window_ns < period_ns:
        reason = (
            f"the region lasts {_milliseconds(end_ns - begin_ns)}, and the sensor looks {_milliseconds(window_ns)} "
            f"in every {_milliseconds(period_ns)}: it may have seen none of it"
        )
    elif inside < _FEWEST_READINGS:
        reason = f"too few readings: {inside} inside the region, of {_FEWEST_READINGS} needed"
    return Energy(
        None if reason else joules,
        max(0.0, low_j - moved_j) * (1 - gain_share),
        (high_j + moved_j) * (1 + gain_share),
        reason,
        inside,
    )


def energy_of_counter(rows: Rows, begin_ns: int, end_ns: int, wraps_at: float) -> Energy:
    """Take the difference of a counter of joules, interpolated between its steps to the region's bounds.

    The interval is what whole steps prove: energy that was surely inside, and energy that surely covers it.
    """
    try:
        times_ns, joules = counter_around(rows, begin_ns, end_ns, wraps_at)
    except Unresolved as unresolved:
        return Energy(None, None, None, str(unresolved), 0)
    inside = _count_inside(times_ns, begin_ns, end_ns)
    steps = steps_of(times_ns, joules)
    shown_at_begin, shown_at_end = joules[np.searchsorted(times_ns, [begin_ns, end_ns], "right") - 1]
    # The counter lags behind the truth, by its step. So what it shows at a moment was surely spent by then; and what
    # it shows after a step that came wholly after a moment surely covers all that was spent until then.
    covers_begin, covers_end = np.searchsorted(steps.after_ns, [begin_ns, end_ns], "left")
    low_j, high_j = None, None
    if covers_begin < len(steps.joules):
        low_j = max(0.0, float(shown_at_end - steps.joules[covers_begin]))
    if covers_end < len(steps.joules):
        high_j = float(steps.joules[covers_end] - shown_at_begin)
    if not ((steps.after_ns >= begin_ns) & (steps.seen_ns <= end_ns)).any():
        return Energy(None, low_j, high_j, "no step of the counter is wholly inside the region", inside)
    if steps.middle_ns[0] > begin_ns:
        reason = "the counter made no step before the region, so its begin cannot be interpolated"
        return Energy(None, low_j, high_j, reason, inside)
    if low_j is None or high_j is None:
        reason = "the counter made no step after the region, so its end cannot be interpolated"
        return Energy(None, low_j, high_j, reason, inside)
    at_begin, at_end = np.interp([0, end_ns - begin_ns], steps.middle_ns - begin_ns, steps.joules)
    return Energy(min(max(float(at_end - at_begin), low_j), high_j), low_j, high_j, "", inside)


def counter_around(rows: Rows, begin_ns: int, end_ns: int, wraps_at: float) -> tuple[Times, Values]:
    """As ``points_around``, with the counter made to grow on over its wraps; ``wraps_at`` 0 is never."""
    times_ns, joules = points_around(rows, begin_ns, end_ns)
    falls = np.diff(joules, prepend=joules[0]) < 0
    if falls.any() and wraps_at <= 0:
        raise Unresolved("the counter went backwards: the driver was reloaded")
    return times_ns, joules + wraps_at * np.cumsum(falls)


def points_around(rows: Rows, begin_ns: int, end_ns: int) -> tuple[Times, Values]:
    """Return times and values of the readings that hold one, if they enclose the region."""
    if end_ns <= begin_ns:
        raise Unresolved("the region has no length")
    if ((rows["state"] == ReadingState.source_lost) & (rows["time_ns"] <= end_ns)).any():
        raise Unresolved("the source was lost before the region's end")
    good = rows[rows["state"] == ReadingState.reading]  # what failed leaves a gap
    times_ns, values = good["time_ns"], good["value"]
    if not len(good):
        raise Unresolved("every reading failed" if len(rows) else "no readings")
    if (np.diff(times_ns) < 0).any():
        raise ValueError("readings must be of one field and in order of time")
    if times_ns[0] > begin_ns:
        raise Unresolved("the first reading is after the start of the region")
    if times_ns[-1] < end_ns:
        raise Unresolved("the last reading is before the end of the region")
    return times_ns, values


def steps_of(times_ns: Times, joules: Values) -> CounterSteps:
    rises = np.flatnonzero(np.diff(joules) > 0)
    return CounterSteps(times_ns[rises], times_ns[rises + 1], joules[rises + 1])


def _count_inside(times_ns: Times, begin_ns: int, end_ns: int) -> int:
    return int(((times_ns >= begin_ns) & (times_ns <= end_ns)).sum())


def _milliseconds(ns: int) -> str:
    return f"{ns // 1_000_000} ms"
