"""Charts of the time of a call: ranked intervals, percentiles, curves, samples over time."""

from __future__ import annotations

from functools import cache
from typing import Any

from fairlap.render.charts.parts.chart import (
    Chart,
    JudgedAxis,
    by_contestant,
    coloured,
    contestant_only,
    left_out,
    measured_axis,
    named,
    ratio_scale,
    spec_of,
)
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import CONTESTANTS, INK, MUTED, PAPER

_NO_SAMPLES = "This chart needs raw samples, which are not stored with this run."


@cache
def ranked_intervals(judged: JudgedAxis) -> Chart:
    """Dots above, the interval below them, so that neither hides the other."""
    alt = altair()
    y = by_contestant()
    x = alt.X("judged:Q", scale=ratio_scale(), axis=judged.axis)
    dots = (
        alt.Chart(named("processes"))
        .transform_calculate(shown=judged.shown)
        .mark_circle(size=56, yOffset=-7)
        .encode(
            x=x,
            y=y,
            color=contestant_only(),
            opacity=alt.when("datum.counts == 'counts'").then(alt.value(0.6)).otherwise(alt.value(0.22)),
            tooltip=[
                alt.Tooltip("contestant:N"),
                alt.Tooltip("shown:N", title=judged.by),
                alt.Tooltip("block:Q"),
                alt.Tooltip("counts:N", title="block"),
                alt.Tooltip("samples:Q"),
                alt.Tooltip("course:N"),
            ],
        )
    )
    figures = alt.Chart(named("figures"))
    bars = figures.mark_bar(height=7, cornerRadius=3, yOffset=9, opacity=0.85).encode(
        x=alt.X("judged_low:Q"), x2="judged_high:Q", y=y, color=contestant_only()
    )
    middles = figures.mark_tick(thickness=2.5, height=15, yOffset=9, color=INK).encode(x="judged:Q", y=y)
    return Chart(
        "intervals",
        "Process by process",
        "Every dot is one process; faint dots are in blocks that do not count. The bar is the 95 % interval of the "
        "median over processes, the mark is the median; several modes have no bar. The axis is logarithmic.",
        ("processes", "figures"),
        spec_of(alt.layer(dots, bars, middles)),
    )


@cache
def percentiles() -> Chart:
    alt = altair()
    y = by_contestant()
    shape = alt.Shape(
        "percentile:N",
        scale=alt.Scale(domain=["p50", "p90", "p99"], range=["circle", "square", "triangle-right"]),
        legend=alt.Legend(title=None, orient="top", symbolFillColor=MUTED),
    )
    base = alt.Chart(named("percentiles")).transform_calculate(shown="format(datum.ns / 1e6, '.4~r') + ' ms'")
    x = alt.X("ns:Q", scale=ratio_scale(), axis=measured_axis("duration", "time of a call"))
    spans = (
        base.transform_filter("datum.whole")
        .transform_aggregate(low="min(ns)", high="max(ns)", groupby=["contestant"])
        .mark_rule(strokeWidth=3, opacity=0.35)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=contestant_only())
    )
    faint = (
        base.transform_filter("!datum.whole")
        .mark_point(filled=True, size=22, opacity=0.3, yOffset=10)
        .encode(x=x, y=y, color=contestant_only(), shape=shape)
    )
    strong = (
        base.transform_filter("datum.whole")
        .mark_point(filled=True, size=95, opacity=1)
        .encode(
            x=x,
            y=y,
            color=contestant_only(),
            shape=shape,
            tooltip=["contestant:N", "percentile:N", alt.Tooltip("shown:N", title="time")],
        )
    )
    return Chart(
        "percentiles",
        "Percentiles",
        "The 50th, 90th and 99th percentile of the time of a call. Small marks are single processes.",
        ("percentiles",),
        spec_of(alt.layer(faint, spans, strong)),
    )


@cache
def curves_of_processes() -> Chart:
    return _curves("curves", "Share of processes", "processes' medians", "step-after")


@cache
def curves_of_all_samples(there: bool) -> Chart:
    if not there:
        return left_out("sample_curves", "Share of calls", _NO_SAMPLES)
    return _curves("sample_curves", "Share of calls", "steady samples", "linear")


def _curves(table: str, title: str, of: str, drawn: Any) -> Chart:
    alt = altair()
    lines = (
        alt.Chart(named(table))
        .mark_line(interpolate=drawn, strokeWidth=2.2)
        .encode(
            x=alt.X("ns:Q", scale=ratio_scale(), axis=measured_axis("duration", "time of a call")),
            y=alt.Y("share:Q", title=None, axis=alt.Axis(format=".0%", tickCount=5), scale=alt.Scale(domain=[0, 1])),
            color=coloured(),
            order="share:Q",
        )
    )
    note = f"Cumulative distribution of {of}. A steep curve means little spread; a step means a second mode."
    return Chart(table, title, note, (table,), spec_of(lines.properties(height=240)), keyed=True)


@cache
def over_time(there: bool) -> Chart:
    if not there:
        return left_out(
            "samples",
            "Samples over time",
            _NO_SAMPLES + " The tooltips of the first chart describe the warm-up of each process.",
        )
    alt = altair()
    lines = (
        alt.Chart()
        .transform_filter("!datum.steady")
        .mark_line(strokeWidth=1.1, opacity=0.7)
        .encode(
            x=alt.X("sample:Q", title="sample", axis=alt.Axis(format="~s", tickCount=5)),
            y=alt.Y("ns:Q", title=None, scale=alt.Scale(zero=False), axis=measured_axis("duration", "", ticks=4)),
            color=contestant_only(),
            detail="block:N",
            order="sample:Q",
        )
    )
    marks = (
        alt.Chart()
        .transform_filter("datum.steady")
        .mark_point(filled=True, shape="triangle-down", size=80, color=INK, stroke=PAPER, strokeWidth=1, opacity=1)
        .encode(x="sample:Q", y="ns:Q", tooltip=["contestant:N", "block:Q", alt.Tooltip("sample:Q", title="steady")])
    )
    faceted = alt.layer(lines, marks, data=named("samples")).properties(height=110)
    spec = faceted.facet(
        row=alt.Row(
            "contestant:N", title=None, sort=[CONTESTANTS], header=alt.Header(orient="top", labelAnchor="start")
        )
    ).resolve_scale(y="independent")
    return Chart(
        "samples",
        "Samples over time",
        "One line for each process, at most six for each contestant. A triangle marks the first steady sample; earlier "
        "ones do not count.",
        ("samples",),
        spec_of(spec),
    )
