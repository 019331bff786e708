"""Is a change fit to merge, by two runs that did not take turns? The rule is that of one run, in `gate_findings`."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap import quantity_text, verdict
from fairlap.history.between_runs import Matched, RunsCompared, matched
from fairlap.history.text import difference_text
from fairlap.printed_document import PrintedDocument
from fairlap.race.run import Run
from fairlap.results.decision.gate_findings import E_QUANTITY, STATUSES, finite
from fairlap.results.decision.gate_findings import Finding as Finding
from fairlap.results.decision.gate_findings import GateFinding as GateFinding
from fairlap.results.decision.gate_findings import Status as Status
from fairlap.results.decision.gate_findings import overall as overall
from fairlap.results.decision.gate_findings import require_known as require_known
from fairlap.results.quantities.other_quantities import figure_of, metrics_of_processes, period_of
from fairlap.verdict import Change, Regression, RequiredChange

_FEWEST_PROCESSES = 2


class GateDocument(PrintedDocument, frozen=True, tag="fairlap.gate/1"):
    exit_status: int
    max_slowdown: float
    findings: list[GateFinding]  # empty where the two runs have nothing in common
    trades: tuple[str, ...] = ()  # what a faster contestant, or the faster of two runs, is shown to cost


def finding_between(found: Regression, text: str, max_slowdown: float) -> Finding:
    """Of figures that did not take turns."""
    if found.change is Change.NOT_COMPARABLE or found.low is None or found.high is None:
        return Finding(Status.NOT_COMPARABLE, text)
    status = STATUSES[verdict.slowdown(found.low, found.high, max_slowdown)]
    return Finding(status, text, found.ratio, found.low, finite(found.high))


def findings_between(compared: RunsCompared, *, max_slowdown: float) -> list[Finding]:
    """Of two runs. What only one of them holds cannot be compared."""
    found = [
        finding_between(each.regression, difference_text(each, named=False), max_slowdown)
        for each in compared.differences
    ]
    return found + [Finding(Status.NOT_COMPARABLE, text) for text in compared.unmatched]


def required_between(before: Run, after: Run, required: Sequence[RequiredChange]) -> list[Finding]:
    """Of the same contestants in two runs."""
    of = len({each.quantity for each in required})
    return [_required_of(pair, each, of) for pair in matched(before, after) for each in required]


def _required_of(pair: Matched, required: RequiredChange, of: int) -> Finding:
    """``of`` is how many quantities share the error rate."""
    known = metrics_of_processes(pair.work)
    head = f"{pair.title} · {pair.old[0].conditions} · {pair.new[0].contestant}: {required.text}"
    metric = known.get(required.quantity)
    if metric is None:
        text = f"{head}: two runs are compared by {', '.join(known)} [{E_QUANTITY}]"
        return Finding(Status.NOT_COMPARABLE, text, required=required.text)
    period = period_of(metric)
    if period is not None and (why := pair.why_not_claimed(period)):
        return Finding(Status.NOT_COMPARABLE, f"{head}: {why}", required=required.text)
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
    text = (
        f"{head}: {metric.name} is {ratio} times that before, {len(old)} and {quantity_text.count(len(new), 'process')}"
    )
    status = STATUSES[required.outcome(found.low, found.high)]
    return Finding(status, text, found.ratio, found.low, finite(found.high), required.text)
