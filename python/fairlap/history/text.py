"""The sentences about two saved runs."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.history.between_runs import Difference, RunsCompared
from fairlap.request.work import work_title
from fairlap.verdict import Change


def difference_text(found: Difference, *, named: bool = True) -> str:
    """What became of one contestant, and its warnings below. ``named`` says the verdict's name too."""
    old, new = found.versions
    name = found.after if found.before == found.after else f"{found.before} -> {found.after}"
    versions = f" ({old or 'unknown'} -> {new or 'unknown'})" if old != new else f" ({new})" if new else ""
    medians = " -> ".join(quantity_text.duration(median) for median in found.medians_ns)
    told = ", ".join(part for part in (_verdict(found, named), medians) if part)
    before, after = found.data
    work = work_title(found.work, after if before == after else "")
    head = f"{work} · {found.conditions} · {name}{versions}: {told}"
    return "\n".join([head, *(f"    ! {warning}" for warning in found.regression.warnings)])


def runs_text(compared: RunsCompared) -> str:
    lines = [difference_text(each) for each in compared.differences]
    lines += [f"{text}; not compared" for text in compared.unmatched]
    return "\n".join(lines) if lines else "the two runs have nothing in common"


def _verdict(found: Difference, named: bool) -> str:
    told = found.regression
    if told.ratio is None or told.low is None or told.high is None:
        return "not comparable" if named else ""
    words = {
        Change.SLOWER: "slower",
        Change.FASTER: "faster",
        Change.EQUIVALENT: "equivalent",
        Change.INCONCLUSIVE: "inconclusive",
    }
    processes = f"{found.processes[0]} and {found.processes[1]} processes"
    interval = f"{told.ratio:.3f} times as long [{told.low:.3f}, {told.high:.3f}]"
    name = f"{words[told.change]}: " if named else ""
    return f"{name}{interval}, {processes}"
