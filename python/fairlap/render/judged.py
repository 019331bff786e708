"""The figure that a row is ranked by, as text."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.results.row import Row
from fairlap.scenarios.contract import of_time_ns


def judged_text(row: Row) -> str:
    """``10.02 µs [9.98, 10.07]``, ``812/s [790, 830]``, or its modes; empty where it has none."""
    if row.modes:
        return ", ".join(modes_texts(row))
    return " ".join(judged_and_bounds(row)).rstrip()


def judged_and_bounds(row: Row) -> tuple[str, str]:
    found = row.judged
    if found is None:
        return "", ""
    return quantity_text.figure_and_bounds(found.value, row.judged_unit, found.low, found.high, _resolution_ns(row))


def modes_texts(row: Row) -> list[str]:
    """``10 µs in 40 %``, of each mode."""
    unit, resolution_ns = row.judged_unit, _resolution_ns(row)
    values = [
        quantity_text.figure(of_time_ns(each.value_ns, unit), unit, None, None, resolution_ns) for each in row.modes
    ]
    return [f"{text} in {quantity_text.share(each.share)}" for text, each in zip(values, row.modes, strict=True)]


def _resolution_ns(row: Row) -> float | None:
    """No digit below it is shown; that of programs which time themselves is not known."""
    return row.resolution_ns if row.reported_ns is None and row.judged_unit == "ns" else None
