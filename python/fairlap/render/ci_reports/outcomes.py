"""What a row means for a job: it passes, it is slower than the baseline, it failed, or nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fairlap import verdict
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.work_result import ContestantResult, WorkResult
from fairlap.verdict import Verdict

Outcome = Literal["passed", "slower", "inconclusive", "failed", "unsupported"]
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
        outcome, text = _outcome(each, result, results.baseline)
        yield JobOutcome(row, work, outcome, text)


def _outcome(work_result: WorkResult, result: ContestantResult, baseline: str) -> tuple[Outcome, str]:
    name = result.contestant
    if not result.ranked:
        return ("unsupported" if result.worst_outcome in _NOT_HERE else "failed"), result.trouble_with_code
    if not baseline or name == baseline:
        return "passed", ""
    own = [each for each in work_result.comparisons if {each.a, each.b} == {baseline, name}]
    if not own:
        return "inconclusive", work_result.why_no_verdict or f"{name} was not compared with {baseline}"
    comparison = own[0] if own[0].a == name else own[0].reversed()
    text = verdict.sentence(comparison, a_first=True).without_verdict()
    if comparison.verdict is Verdict.SLOWER and not comparison.within_margin:
        return "slower", text
    return ("inconclusive" if comparison.verdict is Verdict.INCONCLUSIVE else "passed"), text
