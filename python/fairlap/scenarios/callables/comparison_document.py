"""A comparison of callables for programs: what its ``to_dict`` and ``fairlap time A B --json`` give."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlap import verdict
from fairlap.engine.measurement import KernelsOfCall, Notice
from fairlap.printed_document import PrintedDocument
from fairlap.scenarios.callables.answers.result import AnswersChecked, Compared
from fairlap.verdict import Verdict
from fairlap.verdict.blocks import Evidence


class PrintedInterval(msgspec.Struct, frozen=True):
    """An end is None where it has no bound."""

    low: float | None
    high: float | None
    level: float


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """``a`` by ``b``: a ratio of times below 1 means that a is faster. What has no bound is None."""

    workload: str
    metric: str
    a: str
    b: str
    blocks: int
    ratio: float
    interval: PrintedInterval
    p: float
    p_adjusted: float
    margin: float
    equivalence_interval: PrintedInterval
    p_equivalent: float
    p_equivalent_adjusted: float
    sign_interval: PrintedInterval
    detectable_effect: float | None
    verdict: Verdict
    within_margin: bool
    level: float
    decided_after_blocks: int | None
    evidence: Evidence
    warnings: list[Notice]
    text: str  # the verdict as a sentence


class PrintedFigure(msgspec.Struct, frozen=True):
    """None where there is no one figure, or no bound."""

    value: float | None
    low: float | None
    high: float | None


class ComparedCallable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    median_ns: float
    figure: PrintedFigure
    warnings: tuple[Notice, ...]
    block_medians_ns: tuple[float, ...] | msgspec.UnsetType = msgspec.UNSET  # with --raw


class PrintedAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """``wrong`` has the callables that are not ranked, because they answered wrong."""

    compared: Compared
    text: str
    reference: str  # a name; empty where there is none
    why_not: str
    checked_calls: int
    timed_calls: int
    in_float64: bool
    structural_cases: int
    wrong: Mapping[str, Notice]


class ComparisonDocument(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.comparison/1"):
    """Rows are sorted by rank, then by time; texts are empty where they do not apply."""

    rows: list[ComparedCallable]
    comparisons: list[ComparedPair]
    places: dict[str, str]
    blocks: int
    seconds: float  # of a callable in a block
    elapsed_s: float
    seed: int
    baseline: str
    until_decided: bool
    interrupted: bool
    ended_early: str
    excluded: dict[str, str]  # callables that are in no comparison, and why
    why_no_verdict: str
    no_verdict_code: str = ""
    regime: str = ""  # of a GPU, as part of every figure
    answers: PrintedAnswers
    kernels_by_callable: dict[str, KernelsOfCall] | msgspec.UnsetType = msgspec.UNSET  # on a GPU


def printed_answers(found: AnswersChecked) -> PrintedAnswers:
    return PrintedAnswers(**vars(found), text=found.text)


def printed_pair(compared: verdict.Comparison) -> ComparedPair:
    own = dict(vars(compared))
    for name in ("interval", "equivalence_interval", "sign_interval"):
        own[name] = PrintedInterval(**vars(own[name]))
    own["metric"] = compared.metric.name
    own["warnings"] = [Notice(each.code, str(each)) for each in compared.warnings]
    return ComparedPair(**own, text=str(verdict.sentence(compared)))
