"""The chart of a race of load: latency against the rate of requests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from fairlap.render.charts.parts.chart import Chart, coloured, measured_axis, named, spec_of
from fairlap.render.charts.parts.chart_tables import Record, key_of
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import INK, MUTED
from fairlap.results.results import Results

SECTION = "load"
_LINES = ("p50", "p90", "p99", "first token p99")
_DASHES = ([2, 2], [7, 3], [1, 0], [10, 3, 2, 3])
_LATENCY = "ns:Q"


def points(shown: Results) -> Iterator[Record]:
    """List the trials of a fixed length: latency against rate."""
    for work_result, result, row in shown.every_row():
        for point in row.latency_by_rate:
            values = (point.p50_ns, point.p90_ns, point.p99_ns, point.first_token_p99_ns)
            for name, value in zip(_LINES, values, strict=True):
                if value is not None:
                    yield key_of(work_result, result.contestant) | {
                        "block": point.block,
                        "rate": point.rate_per_s,
                        "percentile": name,
                        "ns": value,
                        "requests": point.requests,
                    }


@cache
def latency_against_rate() -> Chart:
    alt = altair()
    axis = measured_axis("duration", "latency")
    legend = alt.Legend(
        title=None, orient="top", symbolType="stroke", symbolStrokeColor=INK, symbolStrokeWidth=1.5, symbolSize=900
    )
    dashes = alt.StrokeDash("percentile:N", sort=list(_LINES), scale=alt.Scale(range=_DASHES), legend=legend)
    trials = alt.Chart(named("load")).encode(
        x=alt.X("rate:Q", title="requests per second", axis=alt.Axis(format="~s", tickCount=6)),
        y=alt.Y(_LATENCY, scale=alt.Scale(type="log", nice=False, padding=10), axis=axis),
        color=coloured(),
    )
    lines = trials.mark_line(strokeWidth=1.5).encode(strokeDash=dashes, detail="block:N")
    # Separate from the lines: points on a line leave the legend of its dashes without strokes.
    marks = trials.mark_circle(size=35, opacity=1).encode(
        tooltip=[
            "contestant:N",
            "block:N",
            "percentile:N",
            alt.Tooltip(_LATENCY, title="latency in ns", format=",.4~r"),
            alt.Tooltip("rate:Q", title="requests per second", format=",.4~r"),
            alt.Tooltip("requests:Q", format=","),
        ]
    )
    bounds = alt.Chart(named("load_bounds"))
    rules = bounds.mark_rule(color=INK).encode(y=_LATENCY)
    texts = bounds.mark_text(align="right", baseline="bottom", dx=-4, dy=-3, fontSize=11, color=MUTED)
    named_bounds = texts.encode(x=alt.value("width"), y=_LATENCY, text="bound:N")
    return Chart(
        "load",
        "Latency against rate",
        "One mark for each percentile of a trial of a fixed length; a line joins those of one process. Latency counts "
        "from when a request was due. At rate 0 are lone requests. Horizontal lines are the bounds.",
        ("load", "load_bounds"),
        spec_of(alt.layer(lines, marks, rules, named_bounds).properties(height=280)),
        keyed=True,
        section=SECTION,
        is_main=True,
    )
