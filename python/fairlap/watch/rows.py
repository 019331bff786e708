"""Readings for people: one row per thing. What is absent has no row; absences are listed separately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlap.watch.series import Series


@dataclass(frozen=True)
class Row:
    group: str
    name: str
    text: str
    note: str  # minimum and maximum of the last minute, or a reason
    points: Sequence[tuple[float, float]]
    top: float
    alarming: bool
    essential: bool
    note_in_words: bool = False


def rows_of(series: Sequence[Series]) -> list[Row]:
    """In the order of the series."""
    together: dict[tuple[str, str, str], list[Series]] = {}
    for each in series:
        if each.metric.row and not each.absent and each.shown is not None:
            apart = "" if each.metric.reason else each.labels.get("device", "")
            together.setdefault((each.group, each.metric.row, apart), []).append(each)
    return [_row(of_row, series) for of_row in together.values()]


def _row(of_row: list[Series], all_series: Sequence[Series]) -> Row:
    first = of_row[0]
    if first.metric.bit:
        reasons = [each.metric.reason for each in of_row if each.shown]
        text, note = (reasons or ["nothing"])[0], ", ".join(reasons[1:])
        return Row(first.group, first.metric.row, text, note, (), 1.0, False, False, note_in_words=True)
    # Of several reasons the one with the largest share.
    most = max(of_row, key=lambda each: each.shown or 0.0)
    now, unit = most.shown or 0.0, most.metric.unit
    values = [value for _, value in most.history]
    low, high = min(values, default=now), max(values, default=now)
    whole = _whole_of(most, all_series)
    text = unit.text(now) if whole is None else f"{unit.text(now)} of {unit.text(whole)}"
    throttled = first.metric.row == "throttled" and now > 0.0
    reason = most.metric.reason if throttled else ""
    return Row(
        first.group,
        first.metric.row,
        text,
        reason or unit.range_text(low, high),
        tuple(most.history),
        max(high, unit.least_top) if whole is None else whole,
        throttled,
        first.metric.essential,
        note_in_words=bool(reason),
    )


def _whole_of(part: Series, all_series: Sequence[Series]) -> float | None:
    for each in all_series:
        if each.metric.name == part.metric.whole and each.group == part.group and not each.absent:
            return each.value
    return None
