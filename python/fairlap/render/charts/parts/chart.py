"""What a chart is, and the axes and colours that charts share. Altair is imported when the first chart is made.

A chart holds placeholders instead of data and colours. What depends on no run is therefore made once in a process:
Altair takes some 60 ms for each, most of it to check the specification. No reader may change a specification.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import CONTESTANT_COLOURS, CONTESTANTS, LABEL
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.contract import Unit, as_time_ns

Scope = Literal["work", "both conditions", "batches", "works"]
"""What it draws: the chosen work under the chosen conditions, under both, or at all its batch sizes; or all works."""


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    note: str  # how to read it, in a sentence or two
    tables: tuple[str, ...]  # the first one must not be empty
    spec: dict[str, Any]
    absent: str = ""  # why it is left out; the specification is empty then
    scope: Scope = "work"
    row_height: int = 44  # of one contestant's line; charts that have a height of their own ignore it
    keyed: bool = False  # its colours need a key: contestants have no rows of their own
    section: str = "speed"
    is_main: bool = False  # of what contestants are ranked by, where that is no time


def left_out(key: str, title: str, why: str, *, section: str = "speed") -> Chart:
    return Chart(key, title, "", (), {}, absent=why, section=section)


def with_title(chart: Any, title: str, text: str, characters: int = 120) -> Any:
    """Write the title and the text above a picture that stands alone; ``characters`` fit into a line."""
    above = {"text": title, "subtitle": textwrap.wrap(text, characters), "anchor": "start", "offset": 14}
    return chart.properties(title=above | {"subtitlePadding": 6})


def legend_above(width: int, **further: Any) -> Any:
    """Make a legend without a title, over the whole width."""
    return altair().Legend(title=None, orient="top", labelLimit=width, symbolOpacity=1, **further)


def spec_of(chart: Any) -> dict[str, Any]:
    """Altair's Vega-Lite specification without its default config; the reader's theme decides that."""
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    return spec


_DURATION = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '.4~r') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.4~r') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.4~r') + ' µs' : format(datum.value, '.4~r') + ' ns'"
)
_SECONDS = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '.4~r') + ' s' : "
    "datum.value >= 1e-3 ? format(datum.value * 1e3, '.4~r') + ' ms' : format(datum.value * 1e6, '.4~r') + ' µs'"
)


def size_text(field: str) -> str:
    """Make an expression of Vega that writes a size as ``quantity_text.size`` does."""
    kib, mib, gib = (f"format({field} / {1024**power}, '.3~r')" for power in (1, 2, 3))
    large = f"{field} >= {1024**3} ? {gib} + ' GiB' : {field} >= {1024**2} ? {mib} + ' MiB'"
    return f"{field} == 0 ? '0' : {large} : {kib} + ' KiB'"


_LABELS = {
    "duration": _DURATION,
    "seconds": _SECONDS,
    "bytes": size_text("datum.value"),
    "rate": "format(datum.value, '.4~s')",
    "plain": "format(datum.value, '.4~r')",
}


def duration_labels() -> str:
    """Return an expression of Vega that writes nanoseconds as ``quantity_text.duration`` does."""
    return _DURATION


def size_labels() -> str:
    """Return an expression of Vega that writes bytes as ``quantity_text.size`` does."""
    return _LABELS["bytes"]


_KINDS: Mapping[Unit, str] = {"1/s": "rate", "B": "bytes", "1": "plain"}  # of axes; others are durations
_AFTER: Mapping[Unit, str] = {"1/s": "/s", "B": " B"}


def axis_value(value: float, unit: Unit) -> float:
    """On the axis of what contestants are ranked by: durations in nanoseconds, rates in 1/s."""
    return value if unit == "1/s" else as_time_ns(value, unit)


def with_ends(name: str, found: Estimate) -> dict[str, float]:
    """Put an estimate into three fields of a record; without an interval, its ends are the value."""
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return {name: found.value, f"{name}_low": low, f"{name}_high": high}


@dataclass(frozen=True)
class JudgedAxis:
    """What contestants are ranked by: in nanoseconds, a rate in 1/s, or a value as it is."""

    by: str
    unit: Unit = "ns"

    @property
    def axis(self) -> Any:
        return measured_axis(_KINDS.get(self.unit, "duration"), self.by)

    @property
    def shown(self) -> str:
        """An expression of Vega for tooltips."""
        if self.unit in _KINDS:
            return f"format(datum.judged, '.4~r') + '{_AFTER.get(self.unit, '')}'"
        return "format(datum.judged / 1e6, '.4~r') + ' ms'"


def measured_axis(kind: str, title: str, *, ticks: int = 5, upright: bool = False) -> Any:
    """Sizes have ticks at multiples of a power of two, which are round numbers of MiB, on an axis that begins at 0."""
    where = (
        {"values": altair().ExprRef(_binary_ticks("y" if upright else "x"))}
        if kind == "bytes"
        else {"tickCount": ticks}
    )
    return altair().Axis(title=title, labelExpr=_LABELS[kind], **where)


def _binary_ticks(scale: str) -> str:
    largest = f"domain('{scale}')[1]"
    return f"sequence(0, {largest} * 1.001, pow(2, ceil(log({largest} / 6) / LN2)))"


def by_batch() -> Any:
    """Logarithmic; between two neighbouring sizes Vega also puts ticks at fractions, and no batch has one."""
    alt = altair()
    whole = {"condition": {"test": "datum.value % 1 != 0", "value": 0}, "value": 1}
    label = "datum.value % 1 ? '' : format(datum.value, ',')"
    axis = alt.Axis(title="batch size", labelExpr=label, gridOpacity=whole, tickOpacity=whole)
    return alt.X("batch:Q", scale=alt.Scale(type="log", base=2), axis=axis)


def ratio_scale() -> Any:
    """Logarithmic, so that equal distances are equal ratios; it begins where the figures do."""
    return altair().Scale(type="log", nice=False, padding=14)


def by_contestant(**further: Any) -> Any:
    """One line for each contestant, in the order of the ranked table."""
    alt = altair()
    return alt.Y("contestant:N", title=None, sort=[CONTESTANTS], axis=alt.Axis(labelExpr=LABEL), **further)


def coloured() -> Any:
    alt = altair()
    scale = alt.Scale(domain=[CONTESTANTS], range=[CONTESTANT_COLOURS])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1, labelExpr=LABEL)
    return alt.Color("contestant:N", scale=scale, legend=legend)


def contestant_only() -> Any:
    """Choose the colour where every line has its label and needs no key."""
    alt = altair()
    scale = alt.Scale(domain=[CONTESTANTS], range=[CONTESTANT_COLOURS])
    return alt.Color("contestant:N", scale=scale, legend=None)


def named(table: str) -> Any:
    return altair().NamedData(name=table)


_MOST_ROUND_TICKS = 6


def round_times(times_ns: Sequence[float]) -> list[float]:
    """Ticks of a logarithmic axis: the finest round steps that are few."""
    low, high = math.floor(math.log10(min(times_ns))), math.ceil(math.log10(max(times_ns)))
    for digits in (range(1, 10), (1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**power for power in range(low, high + 1) for digit in digits]
        inside = [tick for tick in ticks if min(times_ns) <= tick <= max(times_ns)]
        if len(inside) <= _MOST_ROUND_TICKS:
            break
    return inside
