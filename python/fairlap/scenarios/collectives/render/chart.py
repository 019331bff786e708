"""Time by size of each collective operation, both logarithmic: measured points, and the fitted line."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.render.charts.parts.chart import (
    legend_above,
    measured_axis,
    ratio_scale,
    round_times,
    spec_of,
    with_ends,
    with_title,
)
from fairlap.render.charts.parts.libraries import altair, drawn
from fairlap.render.charts.parts.look import Look
from fairlap.scenarios.collectives.render.shared_words import NAMES, how_to_read, operations_of, setting, size_texts
from fairlap.scenarios.collectives.results.collectives_result import CollectivesResult

MEASURED, FITTED = "measured", "fitted: latency + bytes / bandwidth"
_WIDTH, _HEIGHT = 780, 260
_POINTS_OF_A_LINE = 40
_MOST_TICKS = 6


def chart_of(result: CollectivesResult, look: Look, *, alone: bool) -> str:
    """Draw it as a picture that stands ``alone``, with its title, or for a page, which has the title."""
    chart = _panels(result, look)
    if alone:
        chart = with_title(chart, "Collective operations", f"{setting(result)} {how_to_read(result)}")
    return drawn(spec_of(chart), look)


def _panels(result: CollectivesResult, look: Look) -> Any:
    alt = altair()
    names = list(dict.fromkeys(row.contestant for row in result.rows if row.time_ns is not None))
    if not names:
        raise InvalidRequest("there is nothing to draw: no collective operation has a time", code="E_COLLECTIVES")
    colour = alt.Color(
        "contestant:N",
        scale=alt.Scale(domain=names, range=look.colours(len(names))),
        legend=legend_above(_WIDTH),
    )
    panels = [_panel(result, operation, colour, look) for operation in operations_of(result)]
    return alt.vconcat(*[panel for panel in panels if panel is not None], spacing=36)


def _panel(result: CollectivesResult, operation: str, colour: Any, look: Look) -> Any:
    """None where nothing was measured."""
    alt = altair()
    points: list[dict[str, Any]] = [
        {
            "kind": MEASURED,
            "contestant": row.contestant,
            "bytes": row.bytes,
            **with_ends("time", row.time_ns),
        }
        for row in result.rows
        if row.operation == operation and row.time_ns is not None
    ]
    if not points:
        return None
    sizes = size_texts(row.bytes for row in result.rows)
    labels = " : ".join(f"datum.value == {size} ? '{text}'" for size, text in sizes.items())
    axis = alt.Axis(title="what each rank gives", values=sorted(sizes), labelExpr=f"{labels} : ''", labelBound=False)
    x = alt.X("bytes:Q", scale=ratio_scale(), axis=axis)
    ticks = round_times([point[end] for point in points for end in ("time_low", "time_high")])
    times = measured_axis("duration", "time of the slowest rank", ticks=_MOST_TICKS)
    times.values = ticks or times.values
    y = alt.Y("time:Q", scale=ratio_scale(), axis=times)
    base = alt.Chart(alt.Data(values=points))
    bars = base.mark_rule(strokeWidth=2, opacity=0.4).encode(x=x, y=alt.Y("time_low:Q"), y2="time_high:Q", color=colour)
    circle = _key(alt.Shape, MEASURED, "circle", legend_above(_WIDTH, symbolFillColor=look.muted))
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=circle)
    solid = _key(alt.StrokeDash, FITTED, [1, 0], legend_above(_WIDTH, symbolType="stroke"))
    layers = [bars, marks]
    if fitted := _lines(result, operation):
        lines = alt.Chart(alt.Data(values=fitted)).mark_line(strokeWidth=1.5, opacity=0.7)
        layers.append(lines.encode(x=x, y=y, color=colour, strokeDash=solid))
    return alt.layer(*layers).properties(
        width=_WIDTH, height=_HEIGHT, title=alt.Title(NAMES[operation], anchor="start")
    )


def _key(channel: Any, text: str, mark: Any, legend: Any) -> Any:
    """Make an entry of the legend for all that a layer draws."""
    return channel("kind:N", scale=altair().Scale(domain=[text], range=[mark]), legend=legend)


def _lines(result: CollectivesResult, operation: str) -> list[dict[str, Any]]:
    sizes = [row.bytes for row in result.rows if row.operation == operation]
    return [
        {
            "kind": FITTED,
            "contestant": fit.contestant,
            "bytes": float(size),
            "time": (0.0 if fit.latency_ns is None else fit.latency_ns.value)
            + (0.0 if fit.bytes_per_s is None else 1e9 * size / fit.bytes_per_s.value),
        }
        for fit in result.fits
        if fit.operation == operation and fit.holds
        for size in np.geomspace(min(sizes), max(sizes), _POINTS_OF_A_LINE)
    ]
