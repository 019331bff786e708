"""The verdicts of one work for programs: its comparisons, and the statistics that many readers look for."""

from __future__ import annotations

import msgspec

from fairlap import verdict
from fairlap.engine.measurement import Notice
from fairlap.request.work import Conditions
from fairlap.results.quantities.other_quantities import QuantityComparisons
from fairlap.results.work_result import WorkResult
from fairlap.verdict import Verdict
from fairlap.verdict.figures.conventional_statistics import MeanAndSpread


class PrintedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """``a`` by ``b``. ``ratio`` is a's figure divided by b's; of an end or an effect without a bound there is None."""

    a: str
    b: str
    verdict: Verdict
    ratio: float
    interval: tuple[float | None, float | None]
    blocks: int
    p_adjusted: float
    level: float
    decided_after_blocks: int | None
    detectable_effect: float | None
    needed_blocks: int | None  # that would decide an inconclusive comparison
    sentence: str
    warnings: list[Notice]


class JudgedBlocks(msgspec.Struct, frozen=True):
    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    noisy: int  # also those that had to stay


class JudgedQuantity(msgspec.Struct, frozen=True):
    metric: str
    comparisons: list[PrintedComparison]
    without: tuple[str, ...]  # contestants that lack this quantity
    why_not: str | None  # all have it, and it is not compared
    quantity: str = ""  # as `fairlap gate --require` calls it


class WelchTest(msgspec.Struct, frozen=True):
    """Of a pair; its figures are None where both have no spread."""

    a: str
    b: str
    t: float | None
    degrees_of_freedom: float | None
    p: float | None


class JudgedWork(msgspec.Struct, frozen=True, kw_only=True):
    """``means`` and ``welch`` are what many readers look for; never the verdict. None where there is no table."""

    work_id: str
    work: str  # its label
    conditions: Conditions
    order_differs: tuple[tuple[str, ...], tuple[str, ...]] | None  # under the two kinds of conditions
    blocks: JudgedBlocks
    why_no_verdict: str | None
    no_verdict_code: str | None
    comparisons: list[PrintedComparison]
    other_quantities: list[JudgedQuantity]
    trades: list[str] = []  # what a faster contestant is shown to cost, such as "5 % faster for 20 % more peak memory"
    means: tuple[MeanAndSpread, ...] | None
    welch: list[WelchTest] | None


def judged_work(found: WorkResult, order_differs: tuple[tuple[str, ...], tuple[str, ...]] | None) -> JudgedWork:
    return JudgedWork(
        work_id=found.work.id,
        work=found.work.label,
        conditions=found.conditions,
        order_differs=order_differs,
        blocks=JudgedBlocks(found.blocks.kept, found.blocks.dropped, found.blocks.noisy),
        why_no_verdict=found.why_no_verdict or None,
        no_verdict_code=found.basis.no_verdict_code or None,
        comparisons=[_comparison(each) for each in found.comparisons],
        other_quantities=[_quantity(each) for each in found.other_quantities],
        trades=found.trades,
        means=None if found.table is None else verdict.means_and_spreads(found.table),
        welch=None if found.table is None else [WelchTest(**vars(each)) for each in verdict.welch(found.table)],
    )


def _quantity(found: QuantityComparisons) -> JudgedQuantity:
    comparisons = [_comparison(each) for each in found.comparisons]
    return JudgedQuantity(found.metric.name, comparisons, found.without, found.why_not or None, found.metric.key)


def _comparison(each: verdict.Comparison) -> PrintedComparison:
    return PrintedComparison(
        a=each.a,
        b=each.b,
        verdict=each.verdict,
        ratio=each.ratio,
        interval=(each.interval.low, each.interval.high),
        blocks=each.blocks,
        p_adjusted=each.p_adjusted,
        level=each.level,
        decided_after_blocks=each.decided_after_blocks,
        detectable_effect=each.detectable_effect,
        needed_blocks=verdict.needed_blocks(each),
        sentence=str(verdict.sentence(each)),
        warnings=[Notice(warning.code, str(warning)) for warning in each.warnings],
    )
