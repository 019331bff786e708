"""Is it fit to merge? One line for each thing compared, and one exit status for all.

By one rule for all kinds of evidence, of `verdict.slowdown`: the interval that tables show, compared with the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import msgspec

from fairlap import verdict
from fairlap.errors import InvalidRequest
from fairlap.history.between_runs import RunsCompared
from fairlap.history.text import WARNING, difference_text
from fairlap.printable import one_line
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.results.work_result import WorkResult
from fairlap.suggestions import did_you_mean
from fairlap.verdict import Change, Regression, Slowdown


class Status(IntEnum):
    """The exit status. A slowdown outranks what could not be compared, and that outranks what is not known."""

    PASSED = 0
    SLOWER = 1
    INCONCLUSIVE = 2
    NOT_COMPARABLE = 3


Word = Literal["passed", "slower", "inconclusive", "not comparable"]
_WORDS: dict[Status, Word] = {
    Status.PASSED: "passed",
    Status.SLOWER: "slower",
    Status.INCONCLUSIVE: "inconclusive",
    Status.NOT_COMPARABLE: "not comparable",
}
_GRAVEST_FIRST = (Status.SLOWER, Status.NOT_COMPARABLE, Status.INCONCLUSIVE)


class GateFinding(msgspec.Struct, frozen=True):
    """``ratio`` is how many times as long the candidate takes, with the interval that decides; None without one."""

    status: Word
    text: str
    ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Finding:
    """``ratio`` is how many times as long the candidate takes, with the interval that decides; None without one."""

    status: Status
    text: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def word(self) -> Word:
        return _WORDS[self.status]

    @property
    def printed(self) -> GateFinding:
        return GateFinding(self.word, self.text, self.ratio, self.low, self.high)

    def __str__(self) -> str:
        """One line, and one more for each warning."""
        return WARNING.join(one_line(part) for part in f"{self.word}: {self.text}".split(WARNING))


def overall(findings: Sequence[Finding], *, strict: bool) -> Status:
    """Inconclusive fails only where that is asked for; a gate that compared nothing never passes."""
    if not findings:
        return Status.NOT_COMPARABLE
    gravest = next((s for s in _GRAVEST_FIRST if any(each.status is s for each in findings)), Status.PASSED)
    return Status.PASSED if gravest is Status.INCONCLUSIVE and not strict else gravest


_STATUSES = {
    Slowdown.EXCEEDED: Status.SLOWER,
    Slowdown.WITHIN: Status.PASSED,
    Slowdown.UNDECIDED: Status.INCONCLUSIVE,
}


def finding_between(found: Regression, text: str, max_slowdown: float) -> Finding:
    """Of figures that did not take turns."""
    if found.change is Change.NOT_COMPARABLE or found.low is None or found.high is None:
        return Finding(Status.NOT_COMPARABLE, text)
    status = _STATUSES[verdict.slowdown(found.low, found.high, max_slowdown)]
    return Finding(status, text, found.ratio, found.low, _finite(found.high))


def findings_between(compared: RunsCompared, *, max_slowdown: float) -> list[Finding]:
    """Of two runs. What only one of them holds cannot be compared."""
    found = [
        finding_between(each.regression, difference_text(each, named=False), max_slowdown)
        for each in compared.differences
    ]
    return found + [Finding(Status.NOT_COMPARABLE, text) for text in compared.unmatched]


def findings_inside(run: Run, baseline: str, candidates: Sequence[str], *, max_slowdown: float) -> list[Finding]:
    """Of one run, in which the baseline and the candidates took turns."""
    names = [name.text for name in run.plan.contestants]
    unknown = [name for name in (baseline, *candidates) if name not in names]
    if unknown:
        meant = did_you_mean(unknown[0], names) or f"this run has {', '.join(names)}"
        raise InvalidRequest(f"{', '.join(unknown)} did not run; {meant}")
    wanted = candidates or [name for name in names if name != baseline]
    results = results_of(run)
    found: list[Finding] = []
    for work in run.plan.works:
        work_results = results.of_work(work)
        if not work_results:
            title = run.plan.title_of(work)
            found.append(Finding(Status.NOT_COMPARABLE, f"{title}: no process of it ended"))
            continue
        found += [_inside(work_results[0], run.plan.title_of(work), baseline, name, max_slowdown) for name in wanted]
    return found


def _inside(work_result: WorkResult, work: str, baseline: str, candidate: str, max_slowdown: float) -> Finding:
    for row in work_result.contestants:
        if row.contestant in (baseline, candidate) and not row.ranked:
            return Finding(Status.NOT_COMPARABLE, f"{work}: {row.contestant} is not ranked: {row.trouble}")
    comparison = work_result.comparison(candidate, baseline)
    if comparison is None:
        why = work_result.why_no_verdict or f"{baseline} and {candidate} were not compared"
        return Finding(Status.NOT_COMPARABLE, f"{work}: {why}")
    text = f"{work}: {verdict.slowdown_sentence(comparison, max_slowdown)}"
    status, times = _STATUSES[verdict.slowdown_of(comparison, max_slowdown)], verdict.times_as_long(comparison)
    return Finding(status, text, times[0], times[1], _finite(times[2]))


def _finite(high: float) -> float | None:
    return high if math.isfinite(high) else None
