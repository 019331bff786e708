"""Axes and colours that charts share. All of Altair is imported when a chart is made, since that takes its time.

What a chart is: a description without data, the tables it draws, and what to say where they are empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairlap.render.charts.libraries import altair
from fairlap.render.charts.look import CONTESTANT_COLOURS, CONTESTANTS

Scope = Literal["work", "both conditions", "batches"]
"""What it draws of what a reader has chosen: the work under one kind of conditions; the work under both;
or the work at all its batch sizes."""


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    told: str  # how to read it, in a sentence or two
    tables: tuple[str, ...]  # the first one must not be empty
    spec: dict[str, Any]
    absent: str = ""  # why it is not there; the description is empty then
    scope: Scope = "work"
    row_height: int = 44  # of one contestant's line; charts that have a height of their own ignore it
    keyed: bool = False  # its colours need a key: contestants have no rows of their own
    section: str = "speed"


def left_out(key: str, title: str, why: str, *, section: str = "speed") -> Chart:
    return Chart(key, title, "", (), {}, absent=why, section=section)


def described(chart: Any) -> dict[str, Any]:
    """Altair's description without its default look, which only the reader's paper decides."""
    told: dict[str, Any] = chart.to_dict()
    told.pop("config", None)
    return told


_DURATION = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '.4~r') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.4~r') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.4~r') + ' µs' : format(datum.value, '.4~r') + ' ns'"
)
_SECONDS = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '.4~r') + ' s' : "
    "datum.value >= 1e-3 ? format(datum.value * 1e3, '.4~r') + ' ms' : format(datum.value * 1e6, '.4~r') + ' µs'"
)
_BYTES = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '.4~r') + ' GB' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.4~r') + ' MB' : format(datum.value / 1e3, '.4~r') + ' kB'"
)
_LABELS = {
    "duration": _DURATION,
    "seconds": _SECONDS,
    "bytes": _BYTES,
    "rate": "format(datum.value, '.4~s')",
    "plain": "format(datum.value, '.4~r')",
}


def measured_axis(kind: str, title: str, *, ticks: int = 5) -> Any:
    return altair().Axis(title=title, labelExpr=_LABELS[kind], tickCount=ticks)


def ratio_scale() -> Any:
    """Logarithmic, so that equal distances are equal ratios; it begins where the figures do."""
    return altair().Scale(type="log", nice=False, padding=14)


def by_contestant(**further: Any) -> Any:
    """One line for each contestant, in the order of the ranked table."""
    alt = altair()
    return alt.Y("contestant:N", title=None, sort=[CONTESTANTS], axis=alt.Axis(labelLimit=150), **further)


def coloured() -> Any:
    alt = altair()
    scale = alt.Scale(domain=[CONTESTANTS], range=[CONTESTANT_COLOURS])
    return alt.Color("contestant:N", scale=scale, legend=alt.Legend(title=None, orient="top"))


def contestant_only() -> Any:
    """The colour where lines are labelled, so that a key would say it twice."""
    alt = altair()
    scale = alt.Scale(domain=[CONTESTANTS], range=[CONTESTANT_COLOURS])
    return alt.Color("contestant:N", scale=scale, legend=None)


def named(table: str) -> Any:
    return altair().NamedData(name=table)
