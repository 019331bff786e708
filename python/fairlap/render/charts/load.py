"""The chart of a race of load: latency against the rate of requests."""

from __future__ import annotations

from fairlap.render.charts.chart import Chart, coloured, measured_axis, named, spec_of
from fairlap.render.charts.libraries import altair
from fairlap.render.charts.look import INK


def latency_against_rate() -> Chart:
    alt = altair()
    axis = measured_axis("duration", "latency")
    lines = (
        alt.Chart(named("load"))
        .mark_line(strokeWidth=1.5, point={"size": 35, "filled": True})
        .encode(
            x=alt.X("rate:Q", title="requests per second", axis=alt.Axis(format="~s", tickCount=6)),
            y=alt.Y("ns:Q", scale=alt.Scale(type="log", nice=False, padding=10), axis=axis),
            color=coloured(),
            strokeDash=alt.StrokeDash("percentile:N", title="percentile", legend=alt.Legend(symbolType="stroke")),
            tooltip=[
                "contestant:N",
                "percentile:N",
                alt.Tooltip("ns:Q", title="latency in ns", format=",.4~r"),
                alt.Tooltip("rate:Q", title="requests per second", format=",.4~r"),
                alt.Tooltip("requests:Q", format=","),
            ],
        )
    )
    bound = (
        alt.Chart(named("load"))
        .transform_filter("isValid(datum.bound_ns)")
        .mark_rule(strokeDash=[5, 4], color=INK)
        .encode(y="mean(bound_ns):Q", detail="bound_ns:N")
    )
    return Chart(
        "load",
        "Latency against rate",
        "One mark for each trial of a fixed length, over all processes; latency counts from when a request was due. At "
        "rate 0 are lone requests. Dashed lines are the bounds.",
        ("load",),
        spec_of(alt.layer(lines, bound).properties(height=280)),
        keyed=True,
    )
