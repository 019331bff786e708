"""A comparison over axes for programs: what its ``to_dict`` and ``fairlap time --axis ... --json`` give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.axes.axis import Value
from fairlap.scenarios.callables.comparison_document import (
    ComparedCallable,
    ComparedPair,
    PrintedAnswers,
    compared_callable,
    compared_pair,
    printed_answers,
)
from fairlap.verdict import CostBySize

if TYPE_CHECKING:
    from fairlap.scenarios.callables.axes.declared_work import RoofShare
    from fairlap.scenarios.callables.axes.result import ComparisonOverAxes, CurveCrossing, PointResult


class PrintedRoofShare(msgspec.Struct, frozen=True):
    roof: str | None
    share: float | None
    absent: str  # why there is none


class PrintedPoint(msgspec.Struct, frozen=True, kw_only=True):
    point: dict[str, Value]
    rows: list[ComparedCallable]
    comparisons: list[ComparedPair]
    blocks: int
    bytes_per_call: float | None
    flops_per_call: float | None
    roof_shares: dict[str, PrintedRoofShare]  # by callable
    excluded: dict[str, str]
    why_no_verdict: str
    answers: PrintedAnswers | None  # None where nothing was timed
    failed: str  # why the point has no further blocks
    code: str


class PrintedCost(msgspec.Struct, frozen=True):
    name: str
    others: dict[str, Value]  # values of the other axes
    cost: CostBySize | None
    absent: str  # why there is none


class PrintedCrossing(msgspec.Struct, frozen=True, kw_only=True):
    """``low`` and ``high`` are values of the size axis."""

    others: dict[str, Value]
    faster_below: str
    faster_above: str
    low: float
    high: float


class OverAxesDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.comparison-over-axes/1"):
    callables: tuple[str, ...]
    baseline: str
    axes: dict[str, list[Value]]
    size_axis: str  # empty where no axis has several numbers
    points: list[PrintedPoint]
    costs: list[PrintedCost]
    crossings: list[PrintedCrossing]
    quantity: str
    alpha: float
    blocks: int
    seed: int
    elapsed_s: float
    roof_threads: int | None
    interrupted: bool
    ended_early: str


def document_of(compared: ComparisonOverAxes, *, raw: bool) -> OverAxesDocument:
    return OverAxesDocument(
        callables=compared.callables,
        baseline=compared.baseline,
        axes={axis.name: list(axis.values) for axis in compared.axes},
        size_axis=compared.size_axis,
        points=[_point(each, raw) for each in compared.points],
        costs=[PrintedCost(each.name, dict(each.others), each.cost, each.absent) for each in compared.costs],
        crossings=[_crossing(each) for each in compared.crossings],
        quantity=compared.quantity,
        alpha=compared.alpha,
        blocks=compared.blocks,
        seed=compared.seed,
        elapsed_s=compared.elapsed_s,
        roof_threads=compared.roof_threads,
        interrupted=compared.interrupted,
        ended_early=compared.ended_early,
    )


def _point(found: PointResult, raw: bool) -> PrintedPoint:
    return PrintedPoint(
        point=dict(found.point),
        rows=[compared_callable(each, raw) for each in found.rows],
        comparisons=[compared_pair(each) for each in found.comparisons],
        blocks=found.blocks,
        bytes_per_call=found.work.bytes_per_call,
        flops_per_call=found.work.flops_per_call,
        roof_shares={name: _roof_share(each) for name, each in found.roof_shares.items()},
        excluded=dict(found.excluded),
        why_no_verdict=found.why_no_verdict,
        answers=printed_answers(found.answers) if found.answers else None,
        failed=found.failed,
        code=found.code,
    )


def _roof_share(found: RoofShare | str) -> PrintedRoofShare:
    return (
        PrintedRoofShare(None, None, found) if isinstance(found, str) else PrintedRoofShare(found.roof, found.share, "")
    )


def _crossing(found: CurveCrossing) -> PrintedCrossing:
    return PrintedCrossing(others=dict(found.others), **vars(found.crossing))
