"""The ratios of two runs compared. They are what a race claims, since only within a run did contestants alternate.

Whether intervals have a value in common is a cautious test: two 95 % intervals of one ratio are apart in fewer than
5 % of pairs (Schenker and Gentleman, The American Statistician 55, 2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fairlap.history.between_runs import Difference, RunsCompared
from fairlap.request.work import Conditions
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult
from fairlap.verdict import Change, Comparison, Verdict

Outcome = Literal["holds", "refuted", "changed", "undecided", "not comparable"]
"""``refuted``: the intervals have no value in common. ``changed``: nor have they, but a version is not the same."""


@dataclass(frozen=True)
class RatioCompared:
    """The ratio of one contestant to another on one work, in either run: how many times as long it takes."""

    work_id: str
    work: str  # its title
    conditions: Conditions
    contestants: tuple[str, str]  # as either run named it
    baselines: tuple[str, str]
    before: Estimate
    after: Estimate | None  # None where the two were not compared
    outcome: Outcome


@dataclass(frozen=True)
class RatiosCompared:
    """The ratios of one work under one kind of conditions."""

    data: str  # what the calls were fed in both runs; empty where nothing was, or not the same
    ratios: tuple[RatioCompared, ...]
    moved_alike: bool  # all times changed in one direction, but no ratio


def compare_ratios(compared: RunsCompared, before: Results, after: Results) -> tuple[RatiosCompared, ...]:
    """Compare the ratios of contestants that both runs have, to the best of them in the first run."""
    of_works: dict[tuple[str, Conditions], list[Difference]] = {}
    for each in compared.differences:
        of_works.setdefault((each.work_id, each.conditions), []).append(each)
    found = []
    for (work_id, conditions), own in of_works.items():
        old, new = (_work_result(results, work_id, conditions) for results in (before, after))
        if old is None or new is None:
            continue
        if ratios := tuple(_ratios(own, old, new, before.baseline)):
            fed = own[0].data
            found.append(RatiosCompared(fed[0] if fed[0] == fed[1] else "", ratios, _moved_alike(own, ratios)))
    return tuple(found)


def outcome_of(before: Estimate, after: Estimate | None, verdicts: Sequence[Verdict]) -> Outcome:
    """Compare two intervals; touching ones have a value in common."""
    if after is None or before.low is None or before.high is None or after.low is None or after.high is None:
        return "undecided"
    if after.low > before.high or after.high < before.low:
        return "refuted"
    return "undecided" if Verdict.INCONCLUSIVE in verdicts else "holds"


def _work_result(results: Results, work_id: str, conditions: Conditions) -> WorkResult | None:
    found = (each for each in results.work_results if (each.work.id, each.conditions) == (work_id, conditions))
    return next(found, None)


def _ratios(
    differences: Sequence[Difference], old: WorkResult, new: WorkResult, wanted_baseline: str
) -> Iterator[RatioCompared]:
    common = {each.before: each for each in differences}
    ranked = [each.contestant for each in old.contestants if each.ranked and each.contestant in common]
    if not ranked:
        return
    baseline = common[wanted_baseline if wanted_baseline in ranked else ranked[0]]
    for name in ranked:
        own = common[name]
        first = old.comparison(name, baseline.before)  # none of the baseline with itself
        if first is None:
            continue
        second = new.comparison(own.after, baseline.after)
        estimates = _estimate(first), None if second is None else _estimate(second)
        verdicts = [each.verdict for each in (first, second) if each is not None]
        yield RatioCompared(
            work_id=own.work_id,
            work=own.work,
            conditions=own.conditions,
            contestants=(own.before, own.after),
            baselines=(baseline.before, baseline.after),
            before=estimates[0],
            after=estimates[1],
            outcome=_outcome(own, baseline, outcome_of(*estimates, verdicts)),
        )


def _estimate(comparison: Comparison) -> Estimate:
    """As the row has it."""
    return Estimate.bounded(comparison.ratio, comparison.interval.low, comparison.interval.high)


def _outcome(contestant: Difference, baseline: Difference, found: Outcome) -> Outcome:
    both = contestant, baseline
    if any(each.regression.change is Change.NOT_COMPARABLE for each in both):
        return "not comparable"
    same_versions = all(each.versions[0] == each.versions[1] for each in both)
    return "changed" if found == "refuted" and not same_versions else found


def _moved_alike(differences: Sequence[Difference], ratios: Sequence[RatioCompared]) -> bool:
    """Where versions are the same, only the machine can have moved all of them."""
    changes = {each.regression.change for each in differences}
    same_versions = all(each.versions[0] == each.versions[1] for each in differences)
    hold = all(each.outcome == "holds" for each in ratios)
    return changes in ({Change.SLOWER}, {Change.FASTER}) and same_versions and hold
