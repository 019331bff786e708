"""Charts of throughput, start-up, memory, energy, cost and errors, and of both conditions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from fairlap.render.charts.parts.chart import (
    Chart,
    JudgedAxis,
    by_batch,
    by_contestant,
    coloured,
    contestant_only,
    measured_axis,
    named,
    ratio_scale,
    size_text,
    spec_of,
)
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import INK, LAYER_COLOURS, MUTED, PAPER, PHASE_COLOURS


@cache
def judged_by_batch(judged: JudgedAxis) -> Chart:
    shown = altair().Tooltip("shown:N", title=judged.by)
    title = f"{judged.by[:1].upper()}{judged.by[1:]} by batch size"
    return _by_batch("judged_by_batch", title, "judged", judged.axis, shown, {"shown": judged.shown})


@cache
def time_per_item_by_batch() -> Chart:
    alt = altair()
    calculated = {"shown": "format(datum.item_ns / 1e6, '.4~r') + ' ms'"}
    axis = measured_axis("duration", "median time per item")
    shown = alt.Tooltip("shown:N", title="time per item")
    return _by_batch("time_per_item_by_batch", "Time per item by batch size", "item_ns", axis, shown, calculated)


@cache
def batch_sweep() -> Chart:
    axis = measured_axis("rate", "items per second")
    shown = altair().Tooltip("throughput:Q", title="items per second", format=",.4~r")
    return _by_batch("sweep", "Throughput by batch size", "throughput", axis, shown, {})


def peak_by_batch() -> Chart:
    """From zero, since most of it is there at every batch."""
    alt = altair()
    axis = measured_axis("bytes", "peak memory of a process", upright=True)
    found = _by_batch(
        "peak_by_batch",
        "Peak memory by batch size",
        "peak_bytes",
        axis,
        alt.Tooltip("shown:N", title="peak memory"),
        {"shown": size_text("datum.peak_bytes")},
        scale=alt.Scale(zero=True),
    )
    return replace(found, note="With 95 % intervals. Batch sizes are on a logarithmic axis.", section="resources")


def _by_batch(
    key: str, title: str, field: str, axis: Any, shown: Any, calculated: dict[str, str], scale: Any = None
) -> Chart:
    alt = altair()
    scale = scale or alt.Scale(type="log", nice=False, padding=10)
    base = alt.Chart(named("figures")).transform_calculate(**calculated)
    x = by_batch()
    y = alt.Y(f"{field}:Q", scale=scale, axis=axis)
    bands = base.mark_rule(strokeWidth=5, opacity=0.35).encode(
        x=x, y=alt.Y(f"{field}_low:Q"), y2=f"{field}_high:Q", color=coloured()
    )
    lines = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=50)).encode(
        x=x, y=y, color=coloured(), tooltip=["contestant:N", "batch:Q", shown]
    )
    return Chart(
        key,
        title,
        "With 95 % intervals. Both axes are logarithmic.",
        ("figures",),
        spec_of(alt.layer(bands, lines).properties(height=280)),
        scope="batches",
        keyed=True,
    )


@cache
def latency_against_throughput() -> Chart:
    alt = altair()
    base = alt.Chart(named("figures")).transform_calculate(shown="format(datum.p99_ns / 1e6, '.4~r') + ' ms'")
    x = alt.X("p99_ns:Q", scale=ratio_scale(), axis=measured_axis("duration", "p99 latency"))
    y = alt.Y("throughput:Q", scale=ratio_scale(), axis=measured_axis("rate", "items per second"))
    lines = base.mark_line(strokeWidth=1.5, opacity=0.6).encode(x=x, y=y, color=coloured(), order="batch:Q")
    dots = base.mark_circle(size=110, opacity=0.95).encode(
        x=x,
        y=y,
        color=coloured(),
        tooltip=[
            "contestant:N",
            "batch:Q",
            alt.Tooltip("shown:N", title="p99"),
            alt.Tooltip("throughput:Q", title="items per second", format=",.4~r"),
        ],
    )
    return Chart(
        "trade",
        "Latency against throughput",
        "Up and to the left is better. A line connects the batch sizes of one contestant.",
        ("figures",),
        spec_of(alt.layer(lines, dots).properties(height=280)),
        scope="batches",
        keyed=True,
    )


@cache
def cold_and_warm() -> Chart:
    alt = altair()
    y = by_contestant()
    scale = alt.Scale(
        domain=["interpreter", "NumPy", "import", "build", "compile", "bind", "first call"], range=[PHASE_COLOURS]
    )
    bars = (
        alt.Chart(named("phases"))
        .transform_calculate(shown="format(datum.seconds, '.3~r') + ' s'")
        .mark_bar(height=20)
        .encode(
            x=alt.X("sum(seconds):Q", axis=measured_axis("seconds", "until the first output")),
            y=y,
            color=alt.Color("phase:N", scale=scale, legend=alt.Legend(title=None, orient="top")),
            order="order:Q",
            tooltip=["contestant:N", "phase:N", alt.Tooltip("shown:N", title="median")],
        )
    )
    words = (
        alt.Chart(named("first"))
        .mark_text(align="left", baseline="bottom", fontSize=11, color=MUTED, dy=-13)
        .encode(x=alt.datum(0), y=y, text="label:N")
    )
    return Chart(
        "phases",
        "Start-up time",
        "Median time of each phase from the start of a process to its first output, compilation included. The label "
        "above a bar compares it with a steady call.",
        ("phases", "first"),
        spec_of(alt.layer(bars, words)),
        section="cold",
    )


@cache
def memory() -> Chart:
    alt = altair()
    y = by_contestant()
    scale = alt.Scale(domain=["anonymous", "file", "shared"], range=[LAYER_COLOURS])
    bars = (
        alt.Chart(named("memory"))
        .transform_calculate(shown=size_text("datum.bytes"))
        .mark_bar(height=20)
        .encode(
            x=alt.X("sum(bytes):Q", axis=measured_axis("bytes", "resident memory")),
            y=y,
            color=alt.Color("layer:N", scale=scale, legend=alt.Legend(title=None, orient="top")),
            order="order:Q",
            tooltip=["contestant:N", "layer:N", alt.Tooltip("shown:N", title="median")],
        )
    )
    peaks = (
        alt.Chart(named("figures"))
        .transform_calculate(shown=size_text("datum.peak_bytes"))
        .mark_tick(thickness=2.5, height=28, color=INK)
        .encode(
            x=alt.X("peak_bytes:Q"), y=y, tooltip=["contestant:N", alt.Tooltip("shown:N", title="peak of the process")]
        )
    )
    return Chart(
        "memory",
        "Memory",
        "Bars show resident memory after the measurement. Anonymous memory is allocated by the process; file memory is "
        "libraries and weights mapped from disk. The mark is the peak.",
        ("memory", "figures"),
        spec_of(alt.layer(bars, peaks)),
        section="resources",
    )


@cache
def single_value(key: str, title: str, note: str, axis: str) -> Chart:
    """Energy, power, cost: a dot with its interval."""
    alt = altair()
    y = by_contestant()
    base = alt.Chart(named("figures"))
    spans = base.mark_rule(strokeWidth=4, opacity=0.5).encode(
        x=alt.X(f"{key}_low:Q"), x2=f"{key}_high:Q", y=y, color=contestant_only()
    )
    dots = base.mark_circle(size=110, opacity=1).encode(
        x=alt.X(f"{key}:Q", axis=measured_axis("plain", axis), scale=alt.Scale(zero=True)),
        y=y,
        color=contestant_only(),
        tooltip=["contestant:N", alt.Tooltip(f"{key}:Q", title=axis, format=".4~r")],
    )
    spec = spec_of(alt.layer(spans, dots))
    return Chart(key, title, note, ("figures",), spec, section="resources")


@cache
def errors(with_tolerance: bool) -> Chart:
    alt = altair()
    y = by_contestant()
    x = alt.X(
        "relative:Q",
        scale=alt.Scale(type="log", nice=False, padding=14),
        axis=alt.Axis(
            title="relative error against the reference", format="~e", values=[10.0**power for power in range(-20, 10)]
        ),
    )
    when = alt.Scale(
        domain=["before", "changed inputs", "timed call", "after"],
        range=["circle", "square", "diamond", "triangle-right"],
    )
    dots = (
        alt.Chart(named("errors"))
        .mark_point(filled=True, size=75, opacity=0.8)
        .encode(
            x=x,
            y=y,
            color=contestant_only(),
            shape=alt.Shape("when:N", scale=when, legend=alt.Legend(title=None, orient="top", symbolFillColor=MUTED)),
            tooltip=["contestant:N", "what:N", "when:N", alt.Tooltip("relative:Q", format=".2e")],
        )
    )
    layers: list[Any] = [dots]
    note = (
        "Relative error of the outputs against a float64 reference, before the timed run, on other inputs, and after "
        "it. Further left is better."
    )
    if with_tolerance:
        line = (
            alt.Chart(named("tolerances"))
            .mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color=INK)
            .encode(x=alt.X("min(relative):Q"), tooltip=[alt.Tooltip("min(relative):Q", title="tolerance")])
        )
        layers.append(line)
        note += " The dashed line is the relative tolerance of the model."
    else:
        note += " The tolerance of the model is unknown here."
    return Chart(
        "errors",
        "Error against the reference",
        note,
        ("errors", "tolerances"),
        spec_of(alt.layer(*layers)),
        section="answers",
    )


@cache
def both_conditions(judged: JudgedAxis) -> Chart:
    alt = altair()
    y = by_contestant()
    x = alt.X("judged:Q", scale=ratio_scale(), axis=judged.axis)
    base = alt.Chart(named("processes"))
    scale = alt.Scale(domain=["controlled", "as-found"], range=[-9, 9])
    offset = alt.YOffset("conditions:N", scale=scale)
    fill = alt.FillOpacity(
        "conditions:O",
        scale=alt.Scale(domain=["controlled", "as-found"], range=[0.75, 0]),
        legend=alt.Legend(
            title=None, orient="top", symbolFillColor=MUTED, symbolStrokeColor=MUTED, symbolStrokeWidth=1.5
        ),
    )
    dots = (
        base.transform_calculate(shown=judged.shown)
        .mark_point(filled=True, shape="circle", size=58, strokeWidth=1.5)
        .encode(
            x=x,
            y=y,
            yOffset=offset,
            color=contestant_only(),
            stroke=contestant_only(),
            fillOpacity=fill,
            tooltip=["contestant:N", "conditions:N", alt.Tooltip("shown:N", title=judged.by), "block:Q"],
        )
    )
    middles = base.mark_tick(thickness=2, height=14, color=INK, stroke=PAPER, strokeWidth=0.5).encode(
        x=alt.X("median(judged):Q"), y=y, yOffset=offset, detail="conditions:N"
    )
    return Chart(
        "both_conditions",
        "Controlled and as found",
        "Filled dots: controlled processes, with the same allocator behaviour and pinned cores. Rings: processes as "
        "found. Where the two differ, the conditions matter as much as the framework.",
        ("processes",),
        spec_of(alt.layer(dots, middles)),
        scope="both conditions",
    )
