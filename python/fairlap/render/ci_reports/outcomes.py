"""What a row means for a job.

It passes, it is slower than the baseline by more than is allowed, another required quantity is exceeded, it failed, or
nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fairlap import verdict
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import ContestantResult, WorkResult
from fairlap.verdict import Slowdown

Outcome = Literal["passed", "slower", "exceeded", "inconclusive", "failed", "unsupported"]
_NOT_HERE = ("unsupported", "not_installed")


@dataclass(frozen=True)
class JobOutcome:
    row: Row
    work: str
    outcome: Outcome
    text: str  # empty for the baseline, and for what passes without a comparison


def job_outcomes(results: Results) -> Iterator[JobOutcome]:
    """Only a baseline that was named makes others slower: the fastest contestant is no demand."""
    for each, result, row in results.every_row():
        work = f"{results.run.plan.title_of(each.work)} · {each.conditions}"
        outcome, text = _outcome(each, result, results)
        yield JobOutcome(row, work, outcome, text)


_OUTCOMES: dict[Slowdown, Outcome] = {
    Slowdown.EXCEEDED: "slower",
    Slowdown.WITHIN: "passed",
    Slowdown.UNDECIDED: "inconclusive",
}
_GRAVEST_FIRST: tuple[Outcome, ...] = ("slower", "exceeded", "inconclusive", "passed")


def _outcome(work_result: WorkResult, result: ContestantResult, results: Results) -> tuple[Outcome, str]:
    name, baseline = result.contestant, results.baseline
    if not result.ranked:
        return ("unsupported" if result.worst_outcome in _NOT_HERE else "failed"), result.trouble_with_code
    if not baseline or name == baseline:
        return "passed", ""
    comparison = work_result.comparison(name, baseline)
    if comparison is None:
        return "inconclusive", work_result.why_no_verdict or f"{name} was not compared with {baseline}"
    text = verdict.slowdown_sentence(comparison, results.max_slowdown)
    of_time = _OUTCOMES[verdict.slowdown_of(comparison, results.max_slowdown)], text
    found = [of_time, *_required(work_result, name, results)]
    gravest = min((outcome for outcome, _ in found), key=_GRAVEST_FIRST.index)
    return gravest, "; ".join(text for outcome, text in found if outcome == gravest)


def _required(work_result: WorkResult, name: str, results: Results) -> Iterator[tuple[Outcome, str]]:
    found = work_result.other_comparisons(name, results.baseline)
    for each in results.required:
        compared = found.get(each.quantity)
        if compared is None:
            yield "inconclusive", f"{each.text}: {each.quantity} was not compared"
            continue
        shown = each.outcome(compared.interval.low, compared.interval.high)
        text = verdict.required_sentence(compared, each)
        yield ("exceeded" if shown is Slowdown.EXCEEDED else _OUTCOMES[shown]), text
