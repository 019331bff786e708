"""Time by size of every callable, both logarithmic: one panel for each combination of the other axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from fairlap.scenarios.callables.axes.axis import Point, point_text
from fairlap.scenarios.callables.axes.by_size import curves
from fairlap.scenarios.callables.axes.result import ComparisonOverAxes, PointResult
from fairlap.scenarios.callables.render.axes_words import estimate_of, how_to_read, setting

MEASURED, FITTED = "measured", "fitted cost"
_WIDTH, _HEIGHT = 780, 260
_POINTS_OF_A_LINE = 40
_MOST_TICKS = 8


def chart_of(result: ComparisonOverAxes, look: Look, *, alone: bool) -> str:
    """Draw it as a picture that stands ``alone``, with its title, or for a page, which has the title."""
    shown = curves(result.points, result.size_axis) if result.size_axis else ()
    panels = [_panel(result, others, curve, look) for others, curve in shown]
    drawable = [panel for panel in panels if panel is not None]
    if not drawable:
        raise InvalidRequest("there is nothing to draw: no axis has several numbers with times", code="E_AXIS")
    chart = altair().vconcat(*drawable, spacing=36)
    if alone:
        chart = with_title(chart, f"Time by {result.size_axis}", f"{setting(result)} {how_to_read(result)}")
    return drawn(spec_of(chart), look)


def _panel(result: ComparisonOverAxes, others: Point, curve: Sequence[PointResult], look: Look) -> Any:
    """None where nothing was measured."""
    alt = altair()
    points = chart_points(result, curve)
    if not points:
        return None
    names = list(result.callables)
    colour = alt.Color(
        "callable:N",
        scale=alt.Scale(domain=names, range=look.colours(len(names))),
        legend=legend_above(_WIDTH, symbolType="circle"),
    )
    x = alt.X("size:Q", scale=ratio_scale(), axis=_size_axis(result.size_axis, [point["size"] for point in points]))
    times = measured_axis("duration", "time of a call", ticks=_MOST_TICKS)
    times.values = round_times([point[end] for point in points for end in ("time_low", "time_high")]) or times.values
    y = alt.Y("time:Q", scale=ratio_scale(), axis=times)
    base = alt.Chart(alt.Data(values=points))
    solid = _key(alt.StrokeDash, MEASURED, FITTED)
    layers = [
        base.mark_rule(strokeWidth=4, opacity=0.35).encode(x=x, y=alt.Y("time_low:Q"), y2="time_high:Q", color=colour),
        base.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour, strokeDash=solid),
        base.mark_point(size=50, filled=True, opacity=1).encode(x=x, y=y, color=colour),
    ]
    if fitted := _lines(result, others, points):
        lines = alt.Chart(alt.Data(values=fitted)).mark_line(strokeWidth=1.5, opacity=0.8)
        layers.append(lines.encode(x=x, y=y, color=colour, strokeDash=solid))
    if bands := _bands(result, others):
        band = alt.Chart(alt.Data(values=bands)).mark_rect(opacity=0.15, color=look.muted)
        layers.insert(0, band.encode(x=alt.X("low:Q", scale=ratio_scale()), x2="high:Q"))
    title = {"title": alt.Title(point_text(others), anchor="start")} if others else {}
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, **title)


def chart_points(result: ComparisonOverAxes, curve: Sequence[PointResult]) -> list[dict[str, Any]]:
    """Leave out callables that are in no comparison, whose times may be too short, and sizes without a logarithm."""
    return [
        {"kind": MEASURED, "callable": name, "size": size, **with_ends("time", time_ns)}
        for each in curve
        if (size := float(each.point[result.size_axis])) > 0
        for name in result.callables
        if name not in each.excluded and (time_ns := estimate_of(each.row(name))) is not None
    ]


def _lines(result: ComparisonOverAxes, others: Point, points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    sizes = [point["size"] for point in points]
    return [
        {"kind": FITTED, "callable": each.name, "size": float(size), "time": each.cost.time_ns(size)}
        for each in result.costs
        if each.others == others and each.cost is not None
        for size in np.geomspace(min(sizes), max(sizes), _POINTS_OF_A_LINE)
    ]


def _bands(result: ComparisonOverAxes, others: Point) -> list[dict[str, float]]:
    return [
        {"low": each.crossing.low, "high": each.crossing.high}
        for each in result.crossings
        if each.others == others and each.crossing.low > 0
    ]


def _size_axis(name: str, sizes: Sequence[float]) -> Any:
    """With ticks at what was measured, or at some of it."""
    kept = sorted(set(sizes))
    step = math.ceil(len(kept) / _MOST_TICKS)
    return altair().Axis(title=name, values=kept[::step], format=",~r", labelBound=False)


def _key(channel: Any, solid: str, dashed: str) -> Any:
    scale = altair().Scale(domain=[solid, dashed], range=[[1, 0], [6, 4]])
    return channel("kind:N", scale=scale, legend=legend_above(_WIDTH, symbolType="stroke", symbolSize=300))
