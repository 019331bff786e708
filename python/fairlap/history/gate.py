"""Is it fit to merge? One line for each thing compared, and one exit status for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.history.between_runs import RunsCompared
from fairlap.history.text import difference_text
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.results.work_result import WorkResult
from fairlap.verdict import Change, Verdict


class Status(IntEnum):
    """The exit status. A slowdown outranks what could not be compared, and that outranks what is not known."""

    PASSED = 0
    SLOWER = 1
    INCONCLUSIVE = 2
    NOT_COMPARABLE = 3


_GRAVEST_FIRST = (Status.SLOWER, Status.NOT_COMPARABLE, Status.INCONCLUSIVE)


@dataclass(frozen=True)
class Finding:
    status: Status
    text: str

    @property
    def word(self) -> str:
        return self.status.name.lower().replace("_", " ")

    def __str__(self) -> str:
        return f"{self.word}: {self.text}"


def overall(findings: Sequence[Finding], *, strict: bool) -> Status:
    """Inconclusive fails only where that is asked for; a gate that compared nothing never passes."""
    if not findings:
        return Status.NOT_COMPARABLE
    gravest = next((s for s in _GRAVEST_FIRST if any(each.status is s for each in findings)), Status.PASSED)
    return Status.PASSED if gravest is Status.INCONCLUSIVE and not strict else gravest


def findings_between(compared: RunsCompared, *, margin: float) -> list[Finding]:
    """Of two runs. What only one of them holds cannot be compared."""
    statuses = {
        Change.FASTER: Status.PASSED,
        Change.EQUIVALENT: Status.PASSED,
        Change.INCONCLUSIVE: Status.INCONCLUSIVE,
        Change.NOT_COMPARABLE: Status.NOT_COMPARABLE,
        Change.SLOWER: Status.SLOWER,
    }
    found = []
    for each in compared.differences:
        status = statuses[each.regression.change]
        if status is Status.SLOWER and (each.regression.high or 0.0) < 1 + margin:
            status = Status.PASSED
        found.append(Finding(status, difference_text(each, named=False)))
    return found + [Finding(Status.NOT_COMPARABLE, text) for text in compared.unmatched]


def findings_inside(run: Run, baseline: str, candidates: Sequence[str], *, margin: float) -> list[Finding]:
    """Of one run, in which the baseline and the candidates took turns."""
    names = [name.text for name in run.plan.contestants]
    unknown = [name for name in (baseline, *candidates) if name not in names]
    if unknown:
        raise InvalidRequest(f"{', '.join(unknown)} did not run; this run has {', '.join(names)}")
    wanted = candidates or [name for name in names if name != baseline]
    results = results_of(run, margin=margin)
    found: list[Finding] = []
    for work in run.plan.works:
        work_results = results.of_work(work)
        if not work_results:
            title = run.plan.title_of(work)
            found.append(Finding(Status.NOT_COMPARABLE, f"{title}: no process of it ended"))
            continue
        found += [_inside(work_results[0], run.plan.title_of(work), baseline, name) for name in wanted]
    return found


def _inside(work_result: WorkResult, work: str, baseline: str, candidate: str) -> Finding:
    for row in work_result.contestants:
        if row.contestant in (baseline, candidate) and not row.ranked:
            return Finding(Status.NOT_COMPARABLE, f"{work}: {row.contestant} is not ranked: {row.trouble}")
    own = [each for each in work_result.comparisons if {each.a, each.b} == {baseline, candidate}]
    if not own:
        why = work_result.why_no_verdict or f"{baseline} and {candidate} were not compared"
        return Finding(Status.NOT_COMPARABLE, f"{work}: {why}")
    comparison = own[0] if own[0].a == candidate else own[0].reversed()
    text = f"{work}: {verdict.sentence(comparison, a_first=True).without_verdict()}"
    if comparison.verdict is Verdict.SLOWER and not comparison.within_margin:
        return Finding(Status.SLOWER, text)
    return Finding(Status.INCONCLUSIVE if comparison.verdict is Verdict.INCONCLUSIVE else Status.PASSED, text)
