"""Is it fit to merge? One line for each thing compared, and one exit status for all.

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

from fairlap import quantity_text, verdict
from fairlap.errors import InvalidRequest
from fairlap.history.between_runs import Matched, RunsCompared, matched
from fairlap.history.text import WARNING, difference_text
from fairlap.printable import one_line
from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.results.other_quantities import figure_of, metrics_of_processes, quantity_keys
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult
from fairlap.suggestions import did_you_mean
from fairlap.verdict import Change, Regression, RequiredChange, Slowdown
from fairlap.verdict.gates.required_change import E_REQUIRE

E_QUANTITY = "E_QUANTITY"
_FEWEST_PROCESSES = 2


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


def findings_inside(
    results: Results, baseline: str, candidates: Sequence[str], *, max_slowdown: float
) -> list[Finding]:
    """Of one run, in which the baseline and the candidates took turns."""
    plan = results.run.plan
    wanted = _candidates(plan, baseline, candidates)
    found: list[Finding] = []
    for work in plan.works:
        work_results = results.of_work(work)
        if not work_results:
            title = plan.title_of(work)
            found.append(Finding(Status.NOT_COMPARABLE, f"{title}: no process of it ended"))
            continue
        for name in wanted:
            title = plan.title_of(work)
            found.append(_inside(work_results[0], title, baseline, name, max_slowdown))
            if found[-1].ratio is not None:
                found += [_required(work_results[0], title, baseline, name, each) for each in results.required]
    return found


def trades_inside(results: Results, baseline: str, candidates: Sequence[str]) -> list[str]:
    """Write, of each candidate and work, what the faster one of it and the baseline is shown to cost."""
    plan = results.run.plan
    wanted = _candidates(plan, baseline, candidates)
    pairs = ((work, name) for work in results.works() for name in wanted)
    found = ((work, results.of_work(work)[0].trade(name, baseline)) for work, name in pairs)
    return [f"{plan.title_of(work)}: {text}" for work, text in found if text]


def _candidates(plan: Plan, baseline: str, candidates: Sequence[str]) -> Sequence[str]:
    """List those that are judged; all but the baseline where none is named."""
    names = [name.text for name in plan.contestants]
    unknown = [name for name in (baseline, *candidates) if name not in names]
    if unknown:
        meant = did_you_mean(unknown[0], names) or f"this run has {', '.join(names)}"
        raise InvalidRequest(f"{', '.join(unknown)} did not run; {meant}")
    return candidates or [name for name in names if name != baseline]


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
    status = _STATUSES[required.outcome(low, high)]
    return Finding(status, text, comparison.ratio, low, _finite(high), required.text)


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


def required_between(before: Run, after: Run, required: Sequence[RequiredChange]) -> list[Finding]:
    """Of the same contestants in two runs."""
    of = len({each.quantity for each in required})
    return [_required_of(pair, each, of) for pair in matched(before, after) for each in required]


def _required_of(pair: Matched, required: RequiredChange, of: int) -> Finding:
    """``of`` is how many quantities share the error rate."""
    known = metrics_of_processes(pair.work)
    head = f"{pair.work.label} · {pair.old[0].conditions} · {pair.new[0].contestant}: {required.text}"
    metric = known.get(required.quantity)
    if metric is None:
        text = f"{head}: two runs are compared by {', '.join(known)} [{E_QUANTITY}]"
        return Finding(Status.NOT_COMPARABLE, text, required=required.text)
    old, new = (
        [value for process in own if (value := figure_of(metric, process, pair.work))] for own in (pair.old, pair.new)
    )
    if min(len(old), len(new)) < _FEWEST_PROCESSES:
        when = "before" if len(old) < _FEWEST_PROCESSES else "after"
        has = ", ".join(key for key, each in known.items() if all(figure_of(each, one, pair.work) for one in pair.new))
        text = f"{head}: fewer than two processes {when} have a {required.quantity}; they have {has} [{E_QUANTITY}]"
        return Finding(Status.NOT_COMPARABLE, text, required=required.text)
    found = pair.regression(old, new, alpha=verdict.ERROR_RATE / of)
    if found.ratio is None or found.low is None or found.high is None:
        return Finding(Status.NOT_COMPARABLE, f"{head}: the work or the machine differs", required=required.text)
    ratio = quantity_text.ratio_interval(found.ratio, found.low, found.high)
    text = f"{head}: {metric.name} is {ratio} times that before, {len(old)} and {len(new)} processes"
    status = _STATUSES[required.outcome(found.low, found.high)]
    return Finding(status, text, found.ratio, found.low, _finite(found.high), required.text)
