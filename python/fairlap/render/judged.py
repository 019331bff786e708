"""The figure that a row is ranked by, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlap import quantity_text
from fairlap.results.row import Row
from fairlap.scenarios.contract import as_time_ns, of_time_ns
from fairlap.verdict import Comparison


def judged_text(row: Row, unit_ns: float | None = None) -> str:
    """``10.02 µs [9.98, 10.07]``, ``812/s [790, 830]``, or its modes; empty where it has none."""
    if row.modes:
        return ", ".join(modes_texts(row, unit_ns))
    return " ".join(judged_and_bounds(row, unit_ns)).rstrip()


def judged_and_bounds(row: Row, unit_ns: float | None = None) -> tuple[str, str]:
    found = row.judged
    if found is None:
        return "", ""
    resolution_ns = _resolution_ns(row)
    return quantity_text.figure_and_bounds(found.value, row.judged_unit, found.low, found.high, resolution_ns, unit_ns)


def common_unit_ns(rows: Iterable[Row]) -> float | None:
    """Choose the unit of a table's column of judged times; None where rows need units of their own."""
    scales = {"ns": 1.0, "s": 1e9}
    return quantity_text.common_unit_ns(
        row.judged.value * scales[row.judged_unit] for row in rows if row.judged and row.judged_unit in scales
    )


RATIOS_OF_BLOCKS = "Ratios are of times in the same block, so they can differ from those of the medians."


def ratios_note(rows: Sequence[Row]) -> str:
    """Explain ratios that are on the other side of 1 than those of the figures beside them; empty where none is."""
    by_name = {row.contestant: row for row in rows}
    compared = [(row, row.ratio.value, by_name[row.baseline]) for row in rows if row.ratio and row.baseline in by_name]
    apart = any(is_apart(ratio, row, baseline) for row, ratio, baseline in compared)
    return RATIOS_OF_BLOCKS if apart else ""


def is_apart(ratio: float, row: Row, other: Row) -> bool:
    """Whether the ratio says that the first of two takes longer while its figure is the better one, or the reverse."""
    if row.judged is None or other.judged is None or row.modes or other.modes:
        return False
    of_medians = as_time_ns(row.judged.value, row.judged_unit) / as_time_ns(other.judged.value, other.judged_unit)
    return (ratio - 1) * (of_medians - 1) < 0 and quantity_text.times(ratio) != quantity_text.times(of_medians)


def times_text(compared: Comparison) -> str:
    """``1.57× [1.54, 1.60]``, of two contestants."""
    ratio, bounds = quantity_text.ratio_and_bounds(
        compared.ratio, compared.interval.low or None, compared.interval.high
    )
    return f"{ratio}× {bounds}".rstrip()


def modes_texts(row: Row, unit_ns: float | None = None) -> list[str]:
    """``10 µs in 40 %``, of each mode."""
    unit, resolution_ns = row.judged_unit, _resolution_ns(row)
    values = [
        quantity_text.figure_and_bounds(of_time_ns(each.value_ns, unit), unit, None, None, resolution_ns, unit_ns)[0]
        for each in row.modes
    ]
    return [f"{text} in {quantity_text.share(each.share)}" for text, each in zip(values, row.modes, strict=True)]


def _resolution_ns(row: Row) -> float | None:
    """No digit below it is shown; that of programs which time themselves is not known."""
    return row.resolution_ns if row.reported_ns is None and row.judged_unit == "ns" else None
