"""Callables over axes as a document: a line for each point, the fitted costs, and where curves cross."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fairlap import quantity_text, verdict
from fairlap.machine.hardware.roofs import LEVELS
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.callables.axes.axis import point_text, value_text
from fairlap.scenarios.callables.axes.declared_work import RoofShare
from fairlap.scenarios.callables.axes.result import (
    CallableCost,
    ComparisonOverAxes,
    PointResult,
    cost_lines,
    crossing_text,
    overhead_text,
    slope_text,
)
from fairlap.scenarios.callables.render.axes_chart import chart_of
from fairlap.scenarios.callables.render.axes_words import estimate_of, how_to_read, setting
from fairlap.scenarios.callables.result import ONE_PROCESS, CallableRow

_TITLE = "Callables over axes"
_MOST_POINTS_NAMED = 3  # that share a reason
_COST_HEADS = ("callable", "overhead", "cost by size", "largest miss")


def document_of(result: ComparisonOverAxes, *, raw: bool = False) -> Document:
    return Document(
        title=_TITLE,
        facts=(setting(result), f"{ONE_PROCESS} {result.answers_text}"),
        sections=[
            _chart(result),
            Section("Points", [_table(result)]),
            _costs(result),
            Section("Crossings", notes=[crossing_text(each, result.size_axis) for each in result.crossings]),
            Section("Notes", notes=_notes(result)),
        ],
        data=result.document(raw=raw),
        records=_records(result),
        draw=partial(chart_of, result, alone=True),
    )


def _table(result: ComparisonOverAxes) -> Table:
    """Ratios are times of a callable over those of the baseline."""
    others = [name for name in result.callables if name != result.baseline]
    has_shares = any(each.roof_shares for each in result.points)
    heads = [
        *(axis.name for axis in result.axes),
        *result.callables,
        *(f"{name} / {result.baseline}" for name in others),
        *(f"roof of {name}" for name in result.callables if has_shares),
    ]
    rows = [
        [
            *(value_text(each.point[axis.name]) for axis in result.axes),
            *(_time_text(each.row(name)) for name in result.callables),
            *(_ratio_text(each.between(name, result.baseline)) for name in others),
            *(_share_text(each, name) for name in result.callables if has_shares),
        ]
        for each in result.points
    ]
    return Table("Times and ratios at every point", heads, rows)


def _time_text(row: CallableRow | None) -> str:
    found = estimate_of(row)
    return "" if found is None else quantity_text.duration_interval(found.value, found.low, found.high)


def _ratio_text(compared: verdict.Comparison | None) -> str:
    if compared is None:
        return ""
    interval = compared.interval
    return f"{quantity_text.ratio_interval(compared.ratio, interval.low, interval.high)} {compared.verdict.value}"


def _share_text(point: PointResult, name: str) -> str:
    """Such as ``1,500.0 GB/s, 50 % of memory``."""
    found, time = point.roof_shares.get(name), estimate_of(point.row(name))
    if not isinstance(found, RoofShare) or time is None:
        return ""
    is_memory = found.roof in LEVELS
    amount = point.work.bytes_per_call if is_memory else point.work.flops_per_call
    unit = "GB/s" if is_memory else "Gop/s"
    return f"{(amount or 0.0) / time.value:,.1f} {unit}, {quantity_text.share(found.share)} of {found.roof}"


def _costs(result: ComparisonOverAxes) -> Section:
    title = f"Fitted: time = overhead + cost of {result.size_axis}"
    fitted = [each for each in result.costs if each.cost is not None]
    if not fitted:
        return Section(title, notes=list(dict.fromkeys(cost_lines(result))))
    absent = [f"{_name(each)}: {each.absent}" for each in result.costs if each.cost is None]
    return Section(title, [Table("Fitted costs", _COST_HEADS, [_cost_cells(result, each) for each in fitted])], absent)


def _cost_cells(result: ComparisonOverAxes, found: CallableCost) -> list[str]:
    cost = found.cost
    if cost is None:
        return [_name(found), "", "", ""]
    size = result.size_axis
    return [
        _name(found),
        overhead_text(cost),
        slope_text(cost, size),
        quantity_text.share(cost.largest_miss),
    ]


def _name(found: CallableCost) -> str:
    return f"{found.name} ({point_text(found.others)})" if found.others else found.name


def _notes(result: ComparisonOverAxes) -> list[str]:
    found = [result.ended_early] if result.ended_early else []
    by_reason: dict[str, list[str]] = {}
    for each in result.points:
        for reason in each.reasons:
            by_reason.setdefault(reason, []).append(point_text(each.point))
    found += [f"{_some(points)}: {reason}" for reason, points in by_reason.items()]
    if result.roof_threads is not None:
        threads = quantity_text.count(result.roof_threads, "thread")
        found.append(f"Roofs are those of this machine with {threads}, for the declared bytes and operations.")
    return [*found, *_impossible(result), *dict.fromkeys(_reasons_of_shares(result))]


def _some(points: Sequence[str]) -> str:
    shown = "; ".join(points[:_MOST_POINTS_NAMED])
    return shown if len(points) <= _MOST_POINTS_NAMED else f"{shown} and {len(points) - _MOST_POINTS_NAMED} more"


def _impossible(result: ComparisonOverAxes) -> Iterator[str]:
    for each in result.points:
        for name, share in each.roof_shares.items():
            if isinstance(share, RoofShare) and share.is_impossible:
                reached = f"{quantity_text.share(share.share)} of the {share.roof} roof"
                yield f"{point_text(each.point)}: {name} would have reached {reached}; check what is declared"


def _reasons_of_shares(result: ComparisonOverAxes) -> Iterator[str]:
    for each in result.points:
        yield from (share for share in each.roof_shares.values() if isinstance(share, str))


def _chart(result: ComparisonOverAxes) -> Section:
    title = f"Time by {result.size_axis}" if result.size_axis else "Time by size"
    if not result.size_axis:
        return Section(
            title, picture=Picture(title, None, "No axis has several numbers, so there is no curve to draw.")
        )
    return Section(title, picture=Picture(title, partial(chart_of, result, alone=False), how_to_read(result)))


_ESTIMATES = ("time_ns", "ratio")


def _records(result: ComparisonOverAxes) -> Records:
    """Write a line for each callable at each point; ratios are over the baseline."""
    axes = [axis.name for axis in result.axes]
    names = (
        *axes,
        "callable",
        *_ESTIMATES,
        "verdict",
        "bytes_per_call",
        "flops_per_call",
        "roof",
        "roof_share",
        "absent",
    )
    rows: list[list[Any]] = []
    for each in result.points:
        for name in result.callables:
            compared = each.between(name, result.baseline)
            share = found if isinstance(found := each.roof_shares.get(name), RoofShare) else None
            rows.append(
                [
                    *(each.point[axis] for axis in axes),
                    name,
                    estimate_of(each.row(name)),
                    _ratio(compared),
                    compared.verdict.value if compared else None,
                    each.work.bytes_per_call,
                    each.work.flops_per_call,
                    share.roof if share else None,
                    share.share if share else None,
                    "; ".join(each.reasons),
                ]
            )
    return Records(names, rows, _ESTIMATES)


def _ratio(compared: verdict.Comparison | None) -> Estimate | None:
    return Estimate.bounded(compared.ratio, compared.interval.low, compared.interval.high) if compared else None
