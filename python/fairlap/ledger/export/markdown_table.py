"""The columns of the table in Markdown. A column that no row of a table fills is left out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlap.engine import digits
from fairlap.ledger.export.markdown_text import as_code, figure_text, ratio_text
from fairlap.ledger.judged_time import judged_time_ns
from fairlap.ledger.schema import Estimate, Row

_NS_PER_S = 1e9
_MB = 1e6


@dataclass(frozen=True)
class ShownColumn:
    head: str
    read: Callable[[Row], str]  # empty when there is nothing to show
    always: bool = False

    def cell(self, row: Row) -> str:
        return self.read(row) or "-"


def columns_shown(rows: Sequence[Row]) -> list[ShownColumn]:
    return [column for column in _COLUMNS if column.always or any(column.read(row) for row in rows)]


def table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _median(row: Row) -> str:
    if row.modes:
        return ", ".join(f"{digits.duration(mode.value_ns)} in {mode.share:.0%}" for mode in row.modes)
    told = judged_time_ns(row)
    if told is None:
        return row.outcome.replace("_", " ")
    resolution_ns = row.resolution_ns or 0.0
    if told.low is None or told.high is None:
        return digits.duration(told.value, resolution_ns)
    return digits.interval(told.value, told.low, told.high, resolution_ns)


def _seconds(told: Estimate | None) -> str:
    return "" if told is None else digits.duration(told.value * _NS_PER_S)


def _megabytes(told: Estimate | None) -> str:
    return "" if told is None else f"{told.value / _MB:,.0f} MB"


def _smallest_memory(row: Row) -> str:
    if row.min_memory_bytes is None:
        return ""
    return f"{row.min_memory_bytes / _MB:,.0f} MB ({row.min_memory_limit})"


def _figure(told: Estimate | None, unit: str = "") -> str:
    return "" if told is None else f"{figure_text(told.value)} {unit}".strip()


_COLUMNS = (
    ShownColumn("#", lambda row: row.place or "", always=True),
    ShownColumn("contestant", lambda row: as_code(row.contestant), always=True),
    ShownColumn("version", lambda row: as_code(row.version or "")),
    ShownColumn("median", _median, always=True),
    ShownColumn("times the baseline", lambda row: ratio_text(row.ratio) if row.ratio is not None else ""),
    ShownColumn("p99", lambda row: digits.duration(row.latency_p99_ns.value) if row.latency_p99_ns is not None else ""),
    ShownColumn("items/s", lambda row: _figure(row.throughput_per_s)),
    ShownColumn("waited", lambda row: f"{row.waited_share.value:.1%}" if row.waited_share is not None else ""),
    ShownColumn("compile", lambda row: _seconds(row.compile_s)),
    ShownColumn("to first answer", lambda row: _seconds(row.time_to_first_inference_s)),
    ShownColumn("to first gradient", lambda row: _seconds(row.time_to_first_gradient_s)),
    ShownColumn("peak memory", lambda row: _megabytes(row.peak_memory_bytes)),
    ShownColumn("runs in", _smallest_memory),
    ShownColumn("energy/item", lambda row: _figure(row.energy_per_item_j, "J")),
    ShownColumn("cost/1000 items", lambda row: _figure(row.cost_per_1000_items, as_code(row.currency or ""))),
    ShownColumn("error", lambda row: f"{row.error_relative:.1e}" if row.error_relative is not None else ""),
    ShownColumn("accuracy", lambda row: f"{row.accuracy:.2%}" if row.accuracy is not None else ""),
)
