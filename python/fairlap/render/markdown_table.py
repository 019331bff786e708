"""The columns of the table in Markdown. A column that no row of a table fills is left out of it.

Strangers' text in Markdown, and figures for people.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlap.engine import digits
from fairlap.errors import shortened
from fairlap.results.row import Estimate, Row, judged_time_ns

_MOST_CHARACTERS = 120
_MOST_DECIMALS = 6
_HARMLESS_AS_CODE = re.compile(r"[A-Za-z0-9 .,_=~<>!:;/()*+%@#&'\"-]+")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def as_code(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text that no Markdown reader takes for anything else: no mark-up, no link, no mention of a person.

    In a code span everything is literal but a backtick, and in a table a bar; a text with anything out of the ordinary
    is written as character references, which are never structure.
    """
    line = " ".join(shortened(text.strip(), most).split())
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
    if not line:
        return ""
    if _HARMLESS_AS_CODE.fullmatch(line):
        return f"`{line}`"
    return f"<code>{_PUNCTUATION.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"


def ratio_text(ratio: Estimate) -> str:
    """``1.31 [1.18, 1.54]``: two digits of the width, and so many decimals that no bound beside 1 is shown as 1."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3g}" if ratio.value < 1000 else f"{ratio.value:,.0f}"
    width = max(ratio.high - ratio.low, 10.0**-_MOST_DECIMALS)
    decimals = min(_MOST_DECIMALS, max(2, 1 - math.floor(math.log10(width))))
    while decimals < _MOST_DECIMALS and any(
        bound != 1 and float(f"{bound:.{decimals}f}") == 1 for bound in (ratio.low, ratio.high)
    ):
        decimals += 1
    value, low, high = (f"{each:.{decimals}f}" for each in (ratio.value, ratio.low, ratio.high))
    return f"{value} [{low}, {high}]"


def figure_text(value: float) -> str:
    """Four figures; thousands with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent_text(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


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
