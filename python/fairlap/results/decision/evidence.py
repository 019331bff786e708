"""What is shown between two contestants on one column: by the verdict where it has one, else by intervals apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fairlap import quantity_text, verdict
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.column_definitions.resources import time_to_first
from fairlap.results.decision.uses import COST, FIRST, LATENCY, P99, THROUGHPUT, Weight
from fairlap.results.quantities.other_quantities import P99 as P99_METRIC
from fairlap.results.quantities.other_quantities import TIME_TO_FIRST_INFERENCE
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.contract import quantities_of_scenarios


def _metrics_of(column: str) -> tuple[verdict.Metric, ...]:
    of_scenarios = (each.metric for each in quantities_of_scenarios() if each.headline == verdict.LATENCY)
    times = (verdict.LATENCY, *of_scenarios)
    found: dict[str, tuple[verdict.Metric, ...]] = {
        LATENCY.column: times,
        THROUGHPUT.column: (verdict.THROUGHPUT,),
        P99.column: (P99_METRIC,),
        COST.column: times,  # the cost is the time at one price
        FIRST.column: (TIME_TO_FIRST_INFERENCE, verdict.TIME_TO_FIRST_GRADIENT),
    }
    return found.get(column, ())


@dataclass(frozen=True)
class Difference:
    """The figure of a divided by that of b, and whether they are shown to differ."""

    ratio: float | None
    is_shown: bool = False
    basis: str = ""  # in words
    absent: str = ""  # why there is no ratio


Evidence = Callable[[str, str, Weight], Difference]


def value_of(row: Row, weight: Weight) -> tuple[Estimate | None, str]:
    """With the reason where it is absent. Gradients have no first inference, but a first gradient."""
    column = time_to_first(row.mode) if weight.column == FIRST.column else weight.column
    return getattr(row, column), row.absent.get(column, "")


def by_intervals(a: Row, b: Row, weight: Weight, *, basis: str = "intervals apart") -> Difference:
    """Shown where the two 95 % intervals have nothing in common: a strict rule, and no verdict."""
    if weight.column == COST.column and a.currency != b.currency and a.currency and b.currency:
        return Difference(None, absent=f"costs are in {a.currency} and {b.currency}")
    values = []
    for row in (a, b):
        value, why = value_of(row, weight)
        if value is None:
            return Difference(None, absent=why)
        values.append(value)
    one, other = values
    if one.value <= 0 or other.value <= 0:
        return Difference(None, absent="a figure is 0")
    return Difference(one.value / other.value, _apart(one, other), basis)


def _apart(one: Estimate, other: Estimate) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


def evidence_of(results: Results) -> Evidence:
    return partial(_over_works, results)


def headline_results(results: Results) -> list[WorkResult]:
    """Each work under the conditions that its verdict is about."""
    return [results.of_work(work)[0] for work in results.works()]


def mean_over_works(results: Results, a: str, b: str) -> verdict.GeometricMean | None:
    """Average over works what contestants are ranked by.

    None where one of the two is not ranked in a work, or has too few blocks, and where works are not judged by the same
    figure.
    """
    logs = []
    if len({each.basis.judged.by for each in headline_results(results)}) > 1:
        return None
    for each in headline_results(results):
        table = each.table
        if table is None or a not in table.contestants or b not in table.contestants:
            return None
        logs.append(table.log_figures_of(a) - table.log_figures_of(b))
    return verdict.geometric_mean_ratio(logs) if logs else None


def _over_works(results: Results, a: str, b: str, weight: Weight) -> Difference:
    """Compute the geometric mean of the ratios of several works.

    A difference counts that is shown in one work at least and contradicted in none, and for the time only where the
    interval of the mean over works does not contain 1.
    """
    found = [_of_work(each, a, b, weight) for each in headline_results(results)]
    if len(found) == 1:
        return found[0]
    without = next((each for each in found if each.ratio is None), None)
    if without is not None or not found:
        return without or Difference(None, absent="nothing was measured")
    ratios = [each.ratio for each in found if each.ratio is not None]
    ratio = math.exp(sum(map(math.log, ratios)) / len(ratios))
    shown = [each for each in found if each.is_shown]
    agree = bool(shown) and all(((each.ratio or 1) < 1) == (ratio < 1) for each in shown)
    basis = f"geometric mean over {quantity_text.count(len(found), 'work')}"
    ranked_by_it = all(each.basis.metric == verdict.LATENCY for each in headline_results(results))
    if weight.column != LATENCY.column or not ranked_by_it:
        return Difference(ratio, agree and len(shown) == len(found), basis)
    mean = mean_over_works(results, a, b)
    if mean is None:
        return Difference(ratio, False, basis)
    basis += f", [{mean.low:.3f}, {mean.high:.3f}], {quantity_text.count(mean.blocks, 'block')}"
    return Difference(mean.ratio, agree and not mean.low <= 1 <= mean.high, basis)


def _of_work(found: WorkResult, a: str, b: str, weight: Weight) -> Difference:
    rows = {row.contestant: row for row in found.rows}
    if a not in rows or b not in rows:
        return Difference(None, absent="one of them was not raced there")
    difference = by_intervals(rows[a], rows[b], weight)
    if difference.ratio is None:
        return difference
    compared = _comparison(found, a, b, weight)
    if compared is not None:
        shown = compared.verdict in (verdict.Verdict.FASTER, verdict.Verdict.SLOWER)
        interval = quantity_text.ratio_and_bounds(compared.ratio, compared.interval.low or None, compared.interval.high)
        basis = f"verdict {interval[1]}".rstrip() + f", {compared.blocks} blocks"
        return Difference(compared.ratio, shown, basis)
    if found.basis.is_refused and _metrics_of(weight.column):
        return Difference(None, absent=found.why_no_verdict)
    if found.table is not None and _metrics_of(weight.column):
        return Difference(difference.ratio, False, difference.basis)  # the race was not asked to compare this pair
    return difference


def _comparison(found: WorkResult, a: str, b: str, weight: Weight) -> verdict.Comparison | None:
    every: list[Sequence[verdict.Comparison]] = [found.comparisons]
    every += [other.comparisons for other in found.other_quantities]
    metrics = _metrics_of(weight.column)
    for comparisons in every:
        for each in comparisons:
            if each.metric in metrics and {each.a, each.b} == {a, b}:
                return each if each.a == a else each.reversed()
    return None
