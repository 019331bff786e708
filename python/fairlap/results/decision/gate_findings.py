"""Is a contestant of a run within its bounds? One line for each thing compared, and one exit status for all.

By one rule for all kinds of evidence, of `verdict.slowdown`: the interval that tables show, compared with the bound.
Quantities that are required, such as memory, have bounds of their own, and one 5 % over all of them.
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
from fairlap.printable import one_line
from fairlap.race.planning.plan import Plan
from fairlap.results.quantities.other_quantities import quantity_keys
from fairlap.results.work_result import WorkResult
from fairlap.suggestions import did_you_mean
from fairlap.verdict import RequiredChange, Slowdown
from fairlap.verdict.gates.required_change import E_REQUIRE

E_QUANTITY = "E_QUANTITY"
WARNING = "\n    ! "
"""Begins the line of a warning."""


class Status(IntEnum):
    """The exit status. A slowdown outranks what could not be compared, and that outranks what is not known."""

    PASSED = 0
    SLOWER = 1
    INCONCLUSIVE = 2
    NOT_COMPARABLE = 3


Word = Literal["passed", "slower", "exceeded", "inconclusive", "not comparable"]
_WORDS: dict[Status, Word] = {
    Status.PASSED: "passed",
    Status.SLOWER: "slower",
    Status.INCONCLUSIVE: "inconclusive",
    Status.NOT_COMPARABLE: "not comparable",
}
_GRAVEST_FIRST = (Status.SLOWER, Status.NOT_COMPARABLE, Status.INCONCLUSIVE)


class GateFinding(msgspec.Struct, frozen=True):
    """``ratio`` is how many times as long the candidate takes, with the interval that decides; None without one.

    Of a required quantity, how many times that of the baseline it is. Exceeded: the requirement is shown not to be met.
    """

    status: Word
    text: str
    ratio: float | None
    low: float | None
    high: float | None
    required: str = ""  # the requirement, such as "memory_peak<=+2%"; empty: the largest slowdown


@dataclass(frozen=True)
class Finding:
    """As ``GateFinding`` prints it."""

    status: Status
    text: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    required: str = ""

    @property
    def word(self) -> Word:
        return "exceeded" if self.required and self.status is Status.SLOWER else _WORDS[self.status]

    @property
    def printed(self) -> GateFinding:
        return GateFinding(self.word, self.text, self.ratio, self.low, self.high, self.required)

    def __str__(self) -> str:
        """One line, and one more for each warning."""
        return WARNING.join(one_line(part) for part in f"{self.word}: {self.text}".split(WARNING))


def overall(findings: Sequence[Finding], *, strict: bool) -> Status:
    """Inconclusive fails only where that is asked for; a gate that compared nothing never passes."""
    if not findings:
        return Status.NOT_COMPARABLE
    gravest = next((s for s in _GRAVEST_FIRST if any(each.status is s for each in findings)), Status.PASSED)
    return Status.PASSED if gravest is Status.INCONCLUSIVE and not strict else gravest


STATUSES = {
    Slowdown.EXCEEDED: Status.SLOWER,
    Slowdown.WITHIN: Status.PASSED,
    Slowdown.UNDECIDED: Status.INCONCLUSIVE,
}


def candidates_named(plan: Plan, baseline: str, candidates: Sequence[str]) -> Sequence[str]:
    """List those that are judged; all but the baseline where none is named."""
    names = [name.text for name in plan.contestants]
    unknown = [name for name in (baseline, *candidates) if name not in names]
    if unknown:
        meant = did_you_mean(unknown[0], names) or f"this run has {', '.join(names)}"
        raise InvalidRequest(f"{', '.join(unknown)} did not run; {meant}")
    return candidates or [name for name in names if name != baseline]


def findings_of_work(
    work_result: WorkResult,
    work: str,
    baseline: str,
    candidate: str,
    *,
    max_slowdown: float,
    required: Sequence[RequiredChange],
) -> list[Finding]:
    """Of a race in which the baseline and the candidate took turns. ``work`` is its title."""
    found = _inside(work_result, work, baseline, candidate, max_slowdown)
    if found.ratio is None:
        return [found]
    return [found, *(_required(work_result, work, baseline, candidate, each) for each in required)]


def _inside(work_result: WorkResult, work: str, baseline: str, candidate: str, max_slowdown: float) -> Finding:
    for row in work_result.contestants:
        if row.contestant in (baseline, candidate) and not row.ranked:
            return Finding(Status.NOT_COMPARABLE, f"{work}: {row.contestant} is not ranked: {row.trouble}")
    comparison = work_result.comparison(candidate, baseline)
    if comparison is None:
        why = work_result.why_no_verdict or f"{baseline} and {candidate} were not compared"
        return Finding(Status.NOT_COMPARABLE, f"{work}: {why}")
    text = f"{work}: {verdict.slowdown_sentence(comparison, max_slowdown)}"
    status, times = STATUSES[verdict.slowdown_of(comparison, max_slowdown)], verdict.times_as_long(comparison)
    return Finding(status, text, times[0], times[1], finite(times[2]))


def finite(high: float) -> float | None:
    return high if math.isfinite(high) else None


def require_known(required: Sequence[RequiredChange]) -> None:
    """Refuse a quantity that no race measures, before one begins."""
    known = quantity_keys()
    for each in required:
        if each.quantity not in known:
            hint = did_you_mean(each.quantity, known) or f"there are {', '.join(known)}"
            raise InvalidRequest(f"{each.text!r}: there is no quantity {each.quantity!r}; {hint}", code=E_REQUIRE)


def _required(work_result: WorkResult, work: str, baseline: str, candidate: str, required: RequiredChange) -> Finding:
    found = work_result.other_comparisons(candidate, baseline)
    comparison = found.get(required.quantity)
    if comparison is None:
        why = _why_not_compared(work_result, required.quantity)
        has = f"; it has {', '.join(found)}" if found else ""
        text = f"{work}: {required.text}: {why}{has} [{E_QUANTITY}]"
        return Finding(Status.NOT_COMPARABLE, text, required=required.text)
    low, high = comparison.interval.low, comparison.interval.high
    text = f"{work}: {verdict.required_sentence(comparison, required)}"
    status = STATUSES[required.outcome(low, high)]
    return Finding(status, text, comparison.ratio, low, finite(high), required.text)


def _why_not_compared(work_result: WorkResult, quantity: str) -> str:
    if quantity == work_result.basis.metric.key:
        return f"contestants are ranked by {quantity}, which --max-slowdown bounds"
    other = next((each for each in work_result.other_quantities if each.metric.key == quantity), None)
    if other is None:
        return f"the run has no {quantity}"
    if other.why_not or other.without:
        return other.why_not or f"no {quantity} is known of {verdict.listed(other.without)}"
    alone = "; it is that of processes which start alone, as with --blocks"
    of_a_start = other.metric in verdict.QUANTITIES_OF_A_START
    return f"{quantity} is known in fewer than two blocks{alone if of_a_start else ''}"
