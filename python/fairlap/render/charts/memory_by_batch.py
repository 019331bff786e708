"""The chart of the search for the largest batch: peak memory against the batch."""

from __future__ import annotations

from functools import cache

from fairlap.render.charts.parts.chart import Chart, by_batch, coloured, named, size_text, spec_of
from fairlap.render.charts.parts.libraries import altair


@cache
def memory_by_batch() -> Chart:
    alt = altair()
    base = alt.Chart(named("batches")).transform_calculate(shown=size_text("datum.peak_bytes"))
    x = by_batch()
    axis = alt.Axis(title="peak memory", labelExpr=size_text("datum.value"), tickCount=5)
    lines = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=50)).encode(
        x=x,
        y=alt.Y("peak_bytes:Q", scale=alt.Scale(type="log", base=2, nice=False, padding=10), axis=axis),
        color=coloured(),
        tooltip=["contestant:N", "batch:Q", alt.Tooltip("shown:N", title="peak memory")],
    )
    return Chart(
        "memory_by_batch",
        "Memory by batch size",
        "Peak memory of a fresh process at each batch that was tried and fitted. Both axes are logarithmic; a line "
        "ends at the largest batch that was found.",
        ("batches",),
        spec_of(lines.properties(height=280)),
        keyed=True,
        section="resources",
    )
