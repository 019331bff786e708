"""A comparison over axes for programs: what its ``to_dict`` and ``fairlap time A B --axis ... --json`` give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from fairlap import verdict
from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.axes.declared_work import RoofShare
from fairlap.scenarios.callables.comparison_document import (
    ComparedCallable,
    ComparedPair,
    PrintedAnswers,
    printed_answers,
    printed_pair,
    printed_row,
)

if TYPE_CHECKING:
    from fairlap.scenarios.callables.axes.result import ComparisonOverAxes, PointResult

Value = int | float | str


class PrintedShare(msgspec.Struct, frozen=True):
    """``absent`` says why there is no share."""

    roof: str | None
    share: float | None
    absent: str


class ComparedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Texts are empty where they do not apply; ``answers`` is None where nothing was timed."""

    point: dict[str, Value]
    rows: list[ComparedCallable]
    comparisons: list[ComparedPair]
    blocks: int
    bytes_per_call: float | None
    flops_per_call: float | None
    roof_shares: dict[str, PrintedShare]
    excluded: dict[str, str]
    why_no_verdict: str
    answers: PrintedAnswers | None
    failed: str
    code: str


class FittedCost(msgspec.Struct, frozen=True):
    name: str
    others: dict[str, Value]  # of the other axes
    cost: verdict.CostBySize | None
    absent: str


class FoundCrossing(msgspec.Struct, frozen=True):
    """``faster_below`` is faster up to ``low``, ``faster_above`` from ``high`` on."""

    others: dict[str, Value]
    faster_below: str
    faster_above: str
    low: float
    high: float


class AxesDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.axes/1"):
    callables: list[str]
    baseline: str
    axes: dict[str, list[Value]]
    size_axis: str
    points: list[ComparedPoint]
    costs: list[FittedCost]
    crossings: list[FoundCrossing]
    quantity: str
    alpha: float
    blocks: int
    seed: int
    elapsed_s: float
    roof_threads: int | None
    interrupted: bool
    ended_early: str


def axes_document(found: ComparisonOverAxes, *, raw: bool) -> AxesDocument:
    return AxesDocument(
        callables=list(found.callables),
        baseline=found.baseline,
        axes={axis.name: list(axis.values) for axis in found.axes},
        size_axis=found.size_axis,
        points=[_point(each, raw) for each in found.points],
        costs=[FittedCost(each.name, dict(each.others), each.cost, each.absent) for each in found.costs],
        crossings=[FoundCrossing(dict(each.others), **vars(each.crossing)) for each in found.crossings],
        quantity=found.quantity,
        alpha=found.alpha,
        blocks=found.blocks,
        seed=found.seed,
        elapsed_s=found.elapsed_s,
        roof_threads=found.roof_threads,
        interrupted=found.interrupted,
        ended_early=found.ended_early,
    )


def _point(found: PointResult, raw: bool) -> ComparedPoint:
    return ComparedPoint(
        point=dict(found.point),
        rows=[printed_row(each, raw) for each in found.rows],
        comparisons=[printed_pair(each) for each in found.comparisons],
        blocks=found.blocks,
        bytes_per_call=found.work.bytes_per_call,
        flops_per_call=found.work.flops_per_call,
        roof_shares=_shares(found.roof_shares),
        excluded=dict(found.excluded),
        why_no_verdict=found.why_no_verdict,
        answers=None if found.answers is None else printed_answers(found.answers),
        failed=found.failed,
        code=found.code,
    )


def _shares(found: Mapping[str, RoofShare | str]) -> dict[str, PrintedShare]:
    return {
        name: PrintedShare(None, None, each) if isinstance(each, str) else PrintedShare(each.roof, each.share, "")
        for name, each in found.items()
    }
