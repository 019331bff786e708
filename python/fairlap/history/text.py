"""The sentences about two saved runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlap import quantity_text
from fairlap.history.between_runs import Difference, RunsCompared
from fairlap.history.operators import OperatorChange, OperatorsCompared
from fairlap.history.ratios_between_runs import Outcome, RatioCompared, RatiosCompared
from fairlap.printable import joined_lines, one_line
from fairlap.request.work_title import work_title
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.gate_findings import WARNING
from fairlap.verdict import Change


def difference_text(found: Difference, *, named: bool = True) -> str:
    """Describe what changed for one contestant, with its warnings below; ``named`` adds the name of the verdict."""
    old, new = found.versions
    name = found.after if found.before == found.after else f"{found.before} -> {found.after}"
    versions = f" ({old or 'unknown'} -> {new or 'unknown'})" if old != new else f" ({new})" if new else ""
    medians = " -> ".join(quantity_text.duration(median) for median in found.medians_ns)
    outcome = ", ".join(part for part in (_verdict(found, named), medians) if part)
    before, after = found.data
    work = work_title(found.work, after if before == after else "")
    head = f"{work} · {found.conditions} · {name}{versions}: {outcome}"
    why = [found.why_no_verdict] if found.why_no_verdict else []
    return WARNING.join(map(one_line, [head, *why, *found.regression.warnings]))


def runs_text(compared: RunsCompared) -> str:
    lines = [difference_text(each) for each in compared.differences]
    lines += [one_line(f"{text}; not compared") for text in compared.unmatched]
    return "\n".join(lines) or "the two runs have nothing in common"


_OUTCOMES: Mapping[Outcome, str] = {
    "holds": "the ratio holds",
    "refuted": "the ratio is refuted, as the intervals have no value in common",
    "changed": "the ratio changed with the version, as the intervals have no value in common",
    "undecided": "undecided",
    "not comparable": "not comparable",
}


def ratios_text(found: Sequence[RatiosCompared]) -> str:
    """Write a line for each ratio, and one where only the machine moved; empty without ratios."""
    lines = []
    for work in found:
        lines += [one_line(_ratio_text(each, work.data)) for each in work.ratios]
        if work.moved_alike:
            lines.append("    all times changed alike: the machine was in another state, and the claim is about ratios")
    return "\n".join(lines)


def _ratio_text(found: RatioCompared, data: str) -> str:
    name, baseline = (old if old == new else f"{old} -> {new}" for old, new in (found.contestants, found.baselines))
    after = "not compared" if found.after is None else _ratio(found.after)
    ratios = f"{_ratio(found.before)} before, {after} after"
    head = f"{work_title(found.work, data)} · {found.conditions} · {name}, times as long as {baseline}"
    return f"{head}: {ratios}: {_OUTCOMES[found.outcome]}"


def _ratio(found: Estimate) -> str:
    return quantity_text.ratio_interval(found.value, found.low, found.high)


def _verdict(found: Difference, named: bool) -> str:
    regression = found.regression
    if regression.ratio is None or regression.low is None or regression.high is None:
        return "not comparable" if named else ""
    words = {
        Change.SLOWER: "slower",
        Change.FASTER: "faster",
        Change.EQUIVALENT: "equivalent",
        Change.INCONCLUSIVE: "inconclusive",
    }
    processes = f"{found.processes[0]} and {found.processes[1]} processes"
    interval = f"{regression.ratio:.3f} times as long [{regression.low:.3f}, {regression.high:.3f}]"
    name = f"{words[regression.change]}: " if named else ""
    return f"{name}{interval}, {processes}"


def operators_text(compared: OperatorsCompared) -> str:
    """Where the difference of one contestant comes from, the largest change first."""
    name = compared.after if compared.before == compared.after else f"{compared.before} -> {compared.after}"
    calls = " -> ".join(quantity_text.duration(each) for each in compared.calls_ns)
    counts = " and ".join(map(str, compared.processes))
    lines = [f"{compared.work} · {name}: operators of profiled calls, {calls} ({counts} untimed processes)"]
    lines += [f"    {_change_text(each)}" for each in compared.changes]
    if not compared.changes:
        lines.append("    no operator changed clearly")
    if compared.profilers[0] != compared.profilers[1]:
        lines.append(f"    ! the profilers differ: {' and '.join(compared.profilers)}")
    return joined_lines(lines)


def _change_text(change: OperatorChange) -> str:
    kind = f" ({change.kind})" if change.kind else ""
    interval = quantity_text.duration_interval(change.difference_ns, change.low_ns, change.high_ns)
    share = "" if change.share is None else f", {quantity_text.share(change.share)} of the difference"
    only = ""
    if not change.before_ns or not change.after_ns:
        only = "; only after" if change.after_ns else "; only before"
    return f"{change.name}{kind} {'+' * (change.difference_ns > 0)}{interval}{share}{only}"
