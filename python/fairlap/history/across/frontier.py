"""Latency against cost: which lines are shown to be both slower and more expensive than another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from fairlap.history.across.lines import Entry, Line
from fairlap.results.row import Estimate


def with_domination(entries: Sequence[Entry]) -> list[Entry]:
    """A line is dominated where the intervals of another one on the same work are below its own in time and in cost.
    Without an interval the figure stands for it. Costs in two currencies are not compared, nor is a contestant that was
    disqualified or measured nothing."""
    return [
        replace(each, line=msgspec.structs.replace(each.line, dominated_by=_dominating(each.line, entries)))
        for each in entries
    ]


def is_eligible(entry: Entry) -> bool:
    """It did the whole work that was asked for in at least one process."""
    return entry.row.processes_finished > 0 and entry.line.outcome not in ("disqualified", "unqualified")


def _dominating(line: Line, entries: Sequence[Entry]) -> list[str]:
    return [
        each.name
        for each in entries
        if is_eligible(each)
        and (each.line.work, each.line.currency) == (line.work, line.currency)
        and _below(each.line.time_ns, line.time_ns)
        and _below(each.line.cost_per_1000_items, line.cost_per_1000_items)
    ]


def _below(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or other is None:
        return False
    high = one.value if one.high is None else one.high
    low = other.value if other.low is None else other.low
    return high < low
