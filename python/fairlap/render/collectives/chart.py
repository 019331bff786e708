"""Time by size of each collective operation, both logarithmic: measured points, and the fitted line."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.render.charts.chart import measured_axis, ratio_scale, spec_of
from fairlap.render.charts.libraries import altair
from fairlap.render.charts.look import LIGHT
from fairlap.render.charts.static import FONT, picture
from fairlap.render.collectives.table import NAMES, about, operations_of, size_text
from fairlap.results.collectives import CollectivesResult

_WIDTH, _HEIGHT = 620, 260
_POINTS_OF_A_LINE = 40


def chart_of(result: CollectivesResult, *, png: bool = False) -> bytes:
    alt = altair()
    names = list(dict.fromkeys(row.contestant for row in result.rows if row.time_ns is not None))
    if not names:
        raise InvalidRequest("there is nothing to draw: no collective operation has a time", code="E_COLLECTIVES")
    colour = alt.Color(
        "contestant:N",
        scale=alt.Scale(domain=names, range=LIGHT.colours(len(names))),
        legend=alt.Legend(title=None, orient="top"),
    )
    panels = [_panel(result, operation, colour) for operation in operations_of(result)]
    chart = alt.vconcat(*[panel for panel in panels if panel is not None], spacing=36)
    title = {"text": "Collective operations", "subtitle": about(result), "anchor": "start", "offset": 14}
    spec: dict[str, Any] = spec_of(chart.properties(title=title)) | {
        "config": LIGHT.config(FONT) | {"background": LIGHT.paper},
        "padding": 16,
    }
    return picture(spec, png=png)


def _panel(result: CollectivesResult, operation: str, colour: Any) -> Any:
    """None where nothing was measured."""
    alt = altair()
    points = [
        {
            "contestant": row.contestant,
            "bytes": row.bytes,
            "time": row.time_ns.value,
            "low": row.time_ns.value if row.time_ns.low is None else row.time_ns.low,
            "high": row.time_ns.value if row.time_ns.high is None else row.time_ns.high,
        }
        for row in result.rows
        if row.operation == operation and row.time_ns is not None
    ]
    if not points:
        return None
    sizes = sorted({row.bytes for row in result.rows if row.operation == operation})
    labels = " : ".join(f"datum.value == {size} ? '{size_text(size)}'" for size in sizes)
    axis = alt.Axis(title="what each rank gives", values=sizes, labelExpr=f"{labels} : ''", labelBound=False)
    x = alt.X("bytes:Q", scale=ratio_scale(), axis=axis)
    y = alt.Y("time:Q", scale=ratio_scale(), axis=measured_axis("duration", "time of the slowest rank"))
    base = alt.Chart(alt.Data(values=points))
    bars = base.mark_rule(strokeWidth=2, opacity=0.4).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour)
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(x=x, y=y, color=colour)
    fitted = alt.Chart(alt.Data(values=_lines(result, operation))).mark_line(strokeWidth=1.5, opacity=0.7)
    layers = [bars, marks, fitted.encode(x=x, y=y, color=colour)]
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=NAMES[operation])


def _lines(result: CollectivesResult, operation: str) -> list[dict[str, Any]]:
    sizes = [row.bytes for row in result.rows if row.operation == operation]
    return [
        {
            "contestant": fit.contestant,
            "bytes": float(size),
            "time": (0.0 if fit.latency_ns is None else fit.latency_ns.value)
            + (0.0 if fit.bytes_per_s is None else 1e9 * size / fit.bytes_per_s.value),
        }
        for fit in result.fits
        if fit.operation == operation and fit.holds
        for size in np.geomspace(min(sizes), max(sizes), _POINTS_OF_A_LINE)
    ]
