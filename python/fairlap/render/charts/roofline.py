"""The roofline: how fast rows compute by how much they compute for each byte, under what the machine can do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from fairlap import quantity_text
from fairlap.machine.hardware.instructions import measured_name
from fairlap.machine.hardware.roofs import LEVELS, Roofs
from fairlap.render.charts.parts.chart import Chart, coloured, named, spec_of
from fairlap.render.charts.parts.libraries import altair
from fairlap.render.charts.parts.look import INK, MUTED
from fairlap.results.columns.roofline import NUMBER_TYPES, PLAIN, roofs_under
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult

Record = dict[str, Any]

_MARGIN = 4.0  # times, on each side of what is drawn
_GIGA = 1e9


def points(shown: Results) -> Iterator[Record]:
    for work_result, result, row in shown.every_row():
        if row.operations_per_byte and row.gflop_per_s is not None and row.roof_share is not None:
            yield {
                "work_id": work_result.work.id,
                "conditions": work_result.conditions,
                "contestant": result.contestant,
                "operations_per_byte": row.operations_per_byte,
                "gflop_per_s": row.gflop_per_s.value,
                "bound": row.bound or "unknown",
                "share": f"{quantity_text.share(row.roof_share)} of the {row.roof} roof",
            }


def lines(shown: Results) -> Iterator[Record]:
    """Two ends of each roof, for each work: of a level, up to where arithmetic becomes the lower one."""
    found: dict[tuple[str, str], list[Record]] = {}
    for each in points(shown):
        found.setdefault((each["work_id"], each["conditions"]), []).append(each)
    for work_result in shown.work_results:
        own = found.get((work_result.work.id, work_result.conditions))
        roofs = roofs_under(shown.run, work_result.work)
        if own and roofs is not None:
            yield from _lines_of(work_result, roofs, [each["operations_per_byte"] for each in own])


def _lines_of(work_result: WorkResult, roofs: Roofs, intensities: list[float]) -> Iterator[Record]:
    work = work_result.work
    types = {NUMBER_TYPES.get(precision, PLAIN) for precision in work.precisions} | {PLAIN}
    peaks = {name: roof.value for name, roof in roofs.operations_per_s.items() if name in types}
    bandwidths = {level: roofs.bytes_per_s[level].value for level in LEVELS if level in roofs.bytes_per_s}
    if not peaks or not bandwidths:
        return
    highest = max(peaks.values())
    ridges = [peak / bandwidth for peak in peaks.values() for bandwidth in bandwidths.values()]
    left, right = min(*intensities, *ridges) / _MARGIN, max(*intensities, *ridges) * _MARGIN
    ends = {
        _label(roofs, name, peak): ((peak / max(bandwidths.values()), peak), (right, peak))
        for name, peak in peaks.items()
    } | {
        f"{level} {quantity_text.number(bandwidth / _GIGA)} GB/s": (
            (left, left * bandwidth),
            (highest / bandwidth, highest),
        )
        for level, bandwidth in bandwidths.items()
    }
    for roof, both in ends.items():
        for intensity, per_s in both:
            yield {
                "work_id": work.id,
                "conditions": work_result.conditions,
                "roof": roof,
                "operations_per_byte": intensity,
                "gflop_per_s": per_s / _GIGA,
                "labelled": intensity in (left, right),
                "flat": both[0][1] == both[1][1],
            }


def _label(roofs: Roofs, number_type: str, peak: float) -> str:
    by = measured_name(roofs.instructions.get(number_type, ""))
    return f"{number_type} {quantity_text.number(peak / _GIGA)} GFLOP/s{by and f', {by}'}"


@cache
def roofline() -> Chart:
    alt = altair()
    scale = alt.Scale(type="log", nice=False, padding=10)
    x = alt.X(
        "operations_per_byte:Q", scale=scale, axis=alt.Axis(title="operations per byte", format="~g", tickCount=8)
    )
    y = alt.Y("gflop_per_s:Q", scale=scale, axis=alt.Axis(title="GFLOP/s", format="~g"))
    roofs = alt.Chart(named("roof_lines"))
    drawn = roofs.mark_line(strokeWidth=1.5, color=MUTED).encode(x=x, y=y, detail="roof:N")
    of_memory = (
        roofs.transform_filter("datum.labelled && !datum.flat")
        .mark_text(align="left", dx=12, dy=4, fontSize=11, color=MUTED)
        .encode(x=x, y=y, text="roof:N")
    )
    of_arithmetic = (
        roofs.transform_filter("datum.labelled && datum.flat")
        .mark_text(align="right", dx=-4, dy=-8, fontSize=11, color=MUTED)
        .encode(x=x, y=y, text="roof:N")
    )
    rows = alt.Chart(named("roofline"))
    dots = rows.mark_point(filled=True, size=110, opacity=0.95, stroke=INK, strokeWidth=0.5).encode(
        x=x,
        y=y,
        color=coloured(),
        tooltip=[
            alt.Tooltip("contestant:N"),
            alt.Tooltip("gflop_per_s:Q", title="GFLOP/s", format=",.4~g"),
            alt.Tooltip("operations_per_byte:Q", title="operations per byte", format=",.4~g"),
            alt.Tooltip("bound:N"),
            alt.Tooltip("share:N", title="share"),
        ],
    )
    return Chart(
        "roofline",
        "Roofline",
        "How fast each contestant computes, under the measured roofs of this machine: a slope is the bandwidth of a "
        "level of memory, a flat line the peak of arithmetic. A mark far below both roofs is bound by neither: look at "
        "its overhead. Both axes are logarithmic.",
        ("roofline", "roof_lines"),
        spec_of(alt.layer(drawn, of_memory, of_arithmetic, dots).properties(height=340)),
        keyed=True,
    )
