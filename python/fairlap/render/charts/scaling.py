"""Charts of several scales: speed-up and efficiency with the linear line, what is projected, and the exchange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from fairlap.render.charts.parts.chart import Chart, coloured, named, spec_of
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import INK, MUTED
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.scales.scaling_series import ScalingSeries

Record = dict[str, Any]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]

MEASURED, LINEAR, PROJECTED = "measured", "linear", "projected, not measured"
_DASHES = {MEASURED: [1, 0], LINEAR: [2, 2], PROJECTED: [6, 4]}
_ON_PROJECTIONS = (
    "Dashed lines in a band are projections by the universal scalability law, with their intervals: they were not "
    "measured and rank nothing. "
)
_LEGEND_STROKE = 400  # long enough for two dashes


def points(shown: Results) -> Iterator[Record]:
    """Once for each work of a series, since every one of them shows the whole."""
    for series in shown.scaling:
        for point in series.points:
            if point.speed_up is None:
                continue
            yield from _for_every_work(
                series,
                {
                    "contestant": series.contestant,
                    "cores": point.scale.cores,
                    "scale": point.scale.text,
                    "line": f"{series.contestant} {point.scale.threads if series.projection.axis == 'ranks' else ''}",
                }
                | _bounds("speed_up", point.speed_up)
                | _bounds("efficiency", point.efficiency),
            )


def linear(shown: Results) -> Iterator[Record]:
    """Of every work once, not of every contestant."""
    seen = set()
    for series in shown.scaling:
        if (series.title, series.conditions) in seen:
            continue
        seen.add((series.title, series.conditions))
        smallest = series.points[0].scale.cores
        for cores in dict.fromkeys(point.scale.cores for point in series.points):
            yield from _for_every_work(series, {"cores": cores, "speed_up": cores / smallest, "efficiency": 1.0})


def projected(shown: Results) -> Iterator[Record]:
    for series in shown.scaling:
        axis = series.projection.axis
        for size, found in series.projected():
            scale = series.points[0].scale
            cores = size * (scale.threads if axis == "ranks" else scale.ranks)
            values = {"cores": cores, "speed_up": found.value, "low": found.low, "high": found.high}
            yield from _for_every_work(series, {"contestant": series.contestant, **values})


def exchanges(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        if row.exchange_share is None:
            continue
        record = {"contestant": result.contestant, "scale": row.scale, "ranks": row.ranks}
        for series in shown.scaling:
            mine = (series.contestant, series.conditions) == (result.contestant, work_result.conditions)
            if mine and any(point.work == work_result.work for point in series.points):
                yield from _for_every_work(series, record | _bounds("share", row.exchange_share))


def _for_every_work(series: ScalingSeries, record: Record) -> Iterator[Record]:
    for point in series.points:
        yield {"work_id": point.work.id, "conditions": series.conditions, **record}


def _bounds(name: str, estimate: Estimate | None) -> Record:
    if estimate is None:
        return {}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def speed_up(tables: Tables) -> Chart:
    alt = altair()
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    x = _cores(tables, scale)
    y = alt.Y("speed_up:Q", scale=scale, axis=alt.Axis(title="times as fast as the smallest scale", format="~g"))
    kinds = _kinds(tables, LINEAR, MEASURED, PROJECTED)
    projection = _of_kind("scaling_projection", PROJECTED)
    band = projection.mark_area(opacity=0.12).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=coloured())
    dashes = projection.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=coloured(), strokeDash=kinds)
    return Chart(
        "speed_up",
        "Speed-up",
        "Items per second over those of the smallest scale, with 95 % intervals. The dotted line is linear, the ideal. "
        f"{_ON_PROJECTIONS if tables['scaling_projection'] else ''}Both axes are logarithmic.",
        ("scaling", "scaling_linear", "scaling_projection"),
        spec_of(
            alt.layer(dashes, band, _ideal(x, y, kinds), *_measured(x, y, "speed_up", kinds)).properties(height=320)
        ),
        keyed=True,
        section="scaling",
    )


def efficiency(tables: Tables) -> Chart:
    alt = altair()
    x = _cores({**tables, "scaling_projection": []}, alt.Scale(type="log", base=2, nice=False, padding=12))
    y = alt.Y("efficiency:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title="share of linear", format=".0%"))
    kinds = _kinds(tables, LINEAR, MEASURED)
    return Chart(
        "efficiency",
        "Efficiency",
        "Speed-up as a share of a linear one, with 95 % intervals. The dotted line is linear, the ideal.",
        ("scaling", "scaling_linear"),
        spec_of(alt.layer(_ideal(x, y, kinds), *_measured(x, y, "efficiency", kinds)).properties(height=240)),
        keyed=True,
        section="scaling",
    )


def _cores(tables: Tables, scale: Any) -> Any:
    """With ticks at what was measured, and beyond it, at twice as much each time, as far as a projection goes."""
    alt = altair()
    ticks = sorted({record["cores"] for record in tables["scaling"]})
    farthest = max((record["cores"] for record in tables["scaling_projection"]), default=0)
    while ticks and 2 * ticks[-1] <= farthest * 1.001:  # the last size is the result of a power
        ticks.append(2 * ticks[-1])
    of_ranks = any("rank" in record["scale"] for record in tables["scaling"])
    title = "threads of all ranks together" if of_ranks else "threads"
    return alt.X("cores:Q", scale=scale, axis=alt.Axis(title=title, format="~g", values=ticks))


def _kinds(tables: Tables, *kinds: str) -> Any:
    """How lines look, and the legend that says so; a projection is in it where there is one."""
    alt = altair()
    drawn = [kind for kind in kinds if kind != PROJECTED or tables["scaling_projection"]]
    scale = alt.Scale(domain=drawn, range=[_DASHES[kind] for kind in drawn])
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolSize=_LEGEND_STROKE)
    return alt.StrokeDash("kind:N", scale=scale, legend=legend)


def _of_kind(table: str, kind: str) -> Any:
    return altair().Chart(named(table)).transform_calculate(kind=f"'{kind}'")


def _ideal(x: Any, y: Any, kinds: Any) -> Any:
    line = _of_kind("scaling_linear", LINEAR).mark_line(color=MUTED, strokeWidth=1.5)
    return line.encode(x=x, y=y, strokeDash=kinds)


def _measured(x: Any, y: Any, name: str, kinds: Any) -> list[Any]:
    alt = altair()
    base = _of_kind("scaling", MEASURED).transform_filter(f"isValid(datum.{name})")
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=coloured(), detail="line:N", strokeDash=kinds)
    spans = (
        base.transform_filter(f"isValid(datum.{name}_low)")
        .mark_rule(strokeWidth=3, opacity=0.5)
        .encode(x=x, y=alt.Y(f"{name}_low:Q"), y2=f"{name}_high:Q", color=coloured())
    )
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=x,
        y=y,
        color=coloured(),
        tooltip=["contestant:N", "scale:N", alt.Tooltip(f"{name}:Q", format=",.3~r")],
    )
    return [lines, spans, dots]


@cache
def exchange_share() -> Chart:
    alt = altair()
    x = alt.X("ranks:O", axis=alt.Axis(title="ranks", labelAngle=0))
    y = alt.Y("share:Q", axis=alt.Axis(title="share of a step", format=".0%", tickCount=5))
    offset = alt.XOffset("contestant:N")
    base = alt.Chart(named("exchanges"))
    spans = (
        base.transform_filter("isValid(datum.share_low)")
        .mark_rule(strokeWidth=4, opacity=0.5)
        .encode(x=x, xOffset=offset, y=alt.Y("share_low:Q"), y2="share_high:Q", color=coloured())
    )
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=x,
        xOffset=offset,
        y=y,
        color=coloured(),
        tooltip=["contestant:N", "scale:N", alt.Tooltip("share:Q", format=".1%")],
    )
    zero = alt.Chart(named("exchanges")).mark_rule(color=INK, strokeWidth=1, aria=False).encode(y=alt.datum(0))
    return Chart(
        "exchange_share",
        "Exchange",
        "How much of a step exchanging between ranks adds: the step of all ranks together, less that of the slowest "
        "rank alone, with 95 % intervals over blocks.",
        ("exchanges",),
        spec_of(alt.layer(zero, spans, dots).properties(height=240)),
        keyed=True,
        section="scaling",
    )
