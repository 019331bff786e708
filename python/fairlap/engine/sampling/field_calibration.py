"""What each number of a sampler costs to read, how often it is new, and over what time it is an average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.engine._native import Readings, ReadingState, TelemetryField, TelemetrySource
from fairlap.engine.sampling.region_energy import Rows, Values, rows_of

_FEWEST_CHANGES = 4
_FEWEST_READINGS = 8  # for a window
_SAME_PERIOD = 1.5  # a gap this much longer than the shortest holds a publication that did not show
_QUARTER = 0.25
_SHORTEST_PERIOD_S = 1e-3

# Of windows that are tried.
_RATIO = 1.03  # from one length to the next
_EXPLAINS = 0.9
_EXPLAINS_AS_MUCH = 0.97
_ELSEWHERE = 1.3


class Unknown(Exception):
    """The reason why a length of time could not be observed."""


@dataclass(frozen=True)
class FieldCalibration:
    """As found on this machine. None is unknown, for the reason given; never 0."""

    source: str
    field: str
    lane: str
    calls: int
    call_ns: float | None
    worst_call_ns: float | None
    period_s: float | None
    period_unknown_because: str
    window_s: float | None
    window_unknown_because: str


def field_calibrations(sources: Sequence[TelemetrySource], readings: Readings) -> list[FieldCalibration]:
    """From readings of every field that is present, each taken alone and much closer together than it is new."""
    found = []
    for source_number, source in enumerate(sources):
        present = {each.name: number for number, each in enumerate(source.fields) if not each.absent_because}
        rows = {name: rows_of(readings, source_number, number) for name, number in present.items()}
        found += [_field_calibration(source, source.fields[present[name]], rows) for name in rows]
    return found


def fast_period_for(found: Iterable[FieldCalibration]) -> float | None:
    """Return a quarter of the shortest period in the fast lane; None where none was seen."""
    periods = [each.period_s for each in found if each.lane == "fast" and each.period_s is not None]
    return max(_SHORTEST_PERIOD_S, _QUARTER * min(periods)) if periods else None


def publication_period(rows: Rows) -> float:
    """Find the time from one new value to the next, if values changed often enough to tell it from chance."""
    times_s, values = _points_of(rows)
    if len(times_s) < 2:
        raise Unknown("it was read fewer than twice")
    changes_s, _ = _changes_of(times_s, values)
    if len(changes_s) < _FEWEST_CHANGES:
        length_ms = round(float(times_s[-1] - times_s[0]) * 1e3)
        raise Unknown(f"its value changed {len(changes_s)} times in {length_ms} ms")
    gaps_s = np.diff(changes_s)
    shortest_s = float(gaps_s.min())
    if shortest_s < 2 * _median_of(np.diff(times_s)):
        raise Unknown("it is new at nearly every look")
    # A publication that repeats the value before does not show, and leaves a gap of two periods or more.
    about_s = _median_of(gaps_s[gaps_s <= _SAME_PERIOD * shortest_s])
    numbers = np.cumsum([0, *np.round(gaps_s / about_s)])
    # A look may be late, and its change with it; a line through all of them evens that out.
    numbers -= numbers.mean()
    return float(numbers @ (changes_s - changes_s[0]) / (numbers @ numbers))


def averaging_window(published: Rows, truth: Rows) -> float:
    """Find the length of the average that makes what was published out of ``truth``.

    That is another field that sees the same faster, or a load that is known, in any unit.
    """
    times_s, values = _points_of(published)
    truth_s, truths = _points_of(truth)
    if min(len(times_s), len(truth_s)) < _FEWEST_READINGS:
        raise Unknown("there are too few readings")
    changes_s, changes = _changes_of(times_s, values)
    if len(changes) < _FEWEST_CHANGES:
        raise Unknown("what was published hardly changed")
    # Half of what is known is kept to judge by, so no longer window can be found.
    longest_s = float(truth_s[-1] - truth_s[0]) / 2
    judged = (changes_s >= truth_s[0] + longest_s) & (changes_s <= truth_s[-1])
    integral = _Integral(truth_s, truths)
    look_s = 2 * longest_s / (len(truth_s) - 1)
    tried_s = np.array(list(_lengths_between(2 * look_s, longest_s)))
    explained = np.array([_explained(changes_s[judged], changes[judged], integral, each) for each in tried_s])
    explained = explained.round(9)  # what differs by less is alike
    if not len(tried_s) or explained.max() < _EXPLAINS:
        raise Unknown("no average of what happened looks like what was published")
    best = int(explained.argmax())
    if best + 1 == len(tried_s):
        raise Unknown("it is longer than what was watched")
    # What repeats is explained as well by windows that are longer by its turns.
    peaks = 1 + np.flatnonzero((explained[1:-1] >= explained[:-2]) & (explained[1:-1] >= explained[2:]))
    ratios = tried_s[peaks] / tried_s[best]
    elsewhere = (ratios > _ELSEWHERE) | (ratios * _ELSEWHERE < 1)
    if (elsewhere & (explained[peaks] > _EXPLAINS_AS_MUCH * explained[best])).any():
        raise Unknown("what happened repeats itself, so that several windows look alike")
    return float(tried_s[best])


def calibration_table(found: Iterable[FieldCalibration]) -> str:
    """One line for each field; what is not known is listed below, once for each reason."""
    reasons: dict[str, int] = {}
    lines = [
        f"{'source':<16} {'field':<32} {'lane':<5} {'call':>10} {'slowest':>10} {'new every':>10} {'average of':>10}"
    ]
    for each in found:
        cells = (
            _length(each.call_ns, "", reasons),
            _length(each.worst_call_ns, "", reasons),
            _length(_ns(each.period_s), each.period_unknown_because, reasons),
            _length(_ns(each.window_s), each.window_unknown_because, reasons),
        )
        name = f"{each.source:<16} {each.field:<32} {each.lane:<5}"
        lines.append(f"{name} {' '.join(f'{cell:>10}' for cell in cells)}")
    return "\n".join([*lines, *(f"({number}) {reason}" for reason, number in reasons.items())])


def _field_calibration(source: TelemetrySource, field: TelemetryField, rows: dict[str, Rows]) -> FieldCalibration:
    own = rows[field.name]
    costs_ns = own["width_ns"][own["state"] == ReadingState.reading].astype(float)
    instant = field.name.replace("_average_", "_instant_")  # the field that this one is the average of
    if instant != field.name and instant in rows:
        window_s, window_unknown_because = _observed(averaging_window, own, rows[instant])
    else:
        window_s = None
        window_unknown_because = "no field of its source sees the same faster; a known load would show it"
    period_s, period_unknown_because = _observed(publication_period, own)
    return FieldCalibration(
        source=source.name,
        field=field.name,
        lane=field.lane.name,
        calls=len(costs_ns),
        call_ns=_median_of(costs_ns) if len(costs_ns) else None,
        worst_call_ns=float(costs_ns.max()) if len(costs_ns) else None,
        period_s=period_s,
        period_unknown_because=period_unknown_because,
        window_s=window_s,
        window_unknown_because=window_unknown_because,
    )


def _observed(observe: Callable[..., float], *rows: Rows) -> tuple[float | None, str]:
    try:
        return observe(*rows), ""
    except Unknown as unknown:
        return None, str(unknown)


def _points_of(rows: Rows) -> tuple[Values, Values]:
    good = rows[rows["state"] == ReadingState.reading]
    return good["time_ns"] * 1e-9, good["value"]


def _changes_of(times_s: Values, values: Values) -> tuple[Values, Values]:
    """Return when each new value was seen, in the middle between the looks around it, and the value."""
    before = np.flatnonzero(np.diff(values))
    return (times_s[before] + times_s[before + 1]) / 2, values[before + 1]


def _median_of(values: Values) -> float:
    """Return one of the values: of an even number of them, the upper one of the middle."""
    return float(np.sort(values)[len(values) // 2])


def _lengths_between(shortest_s: float, longest_s: float) -> Iterator[float]:
    length_s = shortest_s
    while length_s < longest_s:
        yield length_s
        length_s *= _RATIO


def _explained(times_s: Values, values: Values, truth: _Integral, window_s: float) -> float:
    """Return how much of what was published is explained by averages of this length.

    The square of the correlation, which no unit and no offset can spoil.
    """
    means = truth.until(times_s) - truth.until(times_s - window_s)
    if not len(means) or not np.ptp(means) or not np.ptp(values):
        return 0.0
    return float(np.corrcoef(means, values)[0, 1] ** 2)


class _Integral:
    """Of what is a straight line between points, from the first of them on."""

    def __init__(self, times_s: Values, values: Values) -> None:
        lengths_s = np.diff(times_s)
        self._times_s = times_s
        self._values = values
        self._slopes = np.append(np.diff(values) / lengths_s, 0.0)
        self._until = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2 * lengths_s)])

    def until(self, times_s: Values) -> Values:
        at_s = np.clip(times_s, self._times_s[0], self._times_s[-1])
        before = np.searchsorted(self._times_s, at_s, "right") - 1
        part_s = at_s - self._times_s[before]
        return self._until[before] + (self._values[before] + self._slopes[before] * part_s / 2) * part_s


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9


def _length(ns: float | None, unknown_because: str, reasons: dict[str, int]) -> str:
    if ns is None:
        reason = unknown_because or "every call failed"
        return f"({reasons.setdefault(reason, len(reasons) + 1)})"
    return f"{ns / 1e6:.1f} ms" if ns >= 1e6 else f"{ns / 1e3:.1f} us"
