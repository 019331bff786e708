"""A comparison over axes for programs: what its ``to_dict`` and ``fairlap time A B --axis ... --json`` give."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlap import verdict
from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.axes.declared_work import RoofShare
from fairlap.scenarios.callables.comparison_document import (
    ComparedCallable,
    ComparedPair,
    PrintedAnswers,
)

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


def printed_shares(found: Mapping[str, RoofShare | str]) -> dict[str, PrintedShare]:
    return {
        name: PrintedShare(None, None, each) if isinstance(each, str) else PrintedShare(each.roof, each.share, "")
        for name, each in found.items()
    }
