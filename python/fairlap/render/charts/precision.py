"""The chart of time against error, where several precisions were raced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlap.render.charts.parts.chart import (
    Chart,
    JudgedAxis,
    coloured,
    contestant_only,
    named,
    ratio_scale,
    spec_of,
)
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import INK, MUTED
from fairlap.request.work import Precision

_SHAPES: Mapping[Precision, str] = {
    "fp32": "circle",
    "fp16": "triangle-up",
    "bf16": "square",
    "autocast": "diamond",
    "tf32": "cross",
    "int8": "triangle-down",
    "fp8": "triangle-left",
}


def time_against_error(judged: JudgedAxis, precisions: Sequence[Precision], *, together: bool) -> Chart:
    """``together``: the precisions were ranked with each other, in the same blocks."""
    alt = altair()
    base = alt.Chart(named("precisions")).transform_calculate(shown=judged.shown)
    x = alt.X("judged:Q", scale=ratio_scale(), axis=judged.axis)
    y = alt.Y(
        "error:Q",
        scale=ratio_scale(),
        axis=alt.Axis(title="relative error", format=".0e", tickCount=6),
    )
    shape = alt.Shape(
        "precision:N",
        scale=alt.Scale(domain=list(precisions), range=[_SHAPES[each] for each in precisions]),
        legend=alt.Legend(title=None, orient="bottom", symbolFillColor=MUTED),
    )
    frontier = (
        base.transform_filter("datum.frontier")
        .mark_line(interpolate="step-after", strokeWidth=1.5, strokeDash=[5, 4], color=INK)
        .encode(x=x, y=y, order="judged:Q")
    )
    rings = (
        base.transform_filter("datum.frontier")
        .mark_point(size=260, strokeWidth=1.5, color=INK, filled=False)
        .encode(x=x, y=y)
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=y,
        shape=shape,
        color=coloured(),
        opacity=alt.when("datum.qualified").then(alt.value(1)).otherwise(alt.value(0.3)),
        tooltip=[
            alt.Tooltip("contestant:N"),
            alt.Tooltip("precision:N"),
            alt.Tooltip("shown:N", title=judged.by),
            alt.Tooltip("error:Q", title="relative error", format=".2e"),
        ],
    )
    words = (
        base.transform_filter("datum.frontier")
        .mark_text(dy=-14, fontSize=11)
        .encode(x=x, y=y, text="label:N", color=contestant_only())
    )
    how = (
        "All took turns in the same blocks."
        if together
        else "Precisions were raced separately, so the times of two of them are not compared by any verdict."
    )
    return Chart(
        "precisions",
        "Time against error",
        f"Down and to the {'right' if judged.unit == '1/s' else 'left'} is better. Rings and the dashed line mark the "
        "frontier: no other contestant is both "
        "quicker and as exact; errors up to those of fp32 count as equal. Faint marks are not ranked, because of "
        f"--max-drop or of their answers. {how}",
        ("precisions",),
        spec_of(alt.layer(frontier, rings, dots, words).properties(height=320)),
        keyed=True,
    )
