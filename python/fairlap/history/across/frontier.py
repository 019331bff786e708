"""What runs ranked by against its cost: which lines are shown to be both worse and more expensive than another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from fairlap.history.across.lines import Entry, Line
from fairlap.results.column_definitions.estimate import Estimate


def with_domination(entries: Sequence[Entry]) -> list[Entry]:
    """Mark each line that is dominated by another one.

    A line is dominated where the intervals of another one on the same work are better in what both were ranked by, and
    lower in its cost. Without an interval the figure stands for it. Costs in two currencies are not compared, nor is a
    contestant that was disqualified or measured nothing.
    """
    return [
        replace(each, line=msgspec.structs.replace(each.line, dominated_by=_dominating(each.line, entries)))
        for each in entries
    ]


def is_eligible(entry: Entry) -> bool:
    """Check that it did the whole work that was asked for in at least one process."""
    return entry.row.processes_finished > 0 and entry.line.outcome not in ("disqualified", "unqualified")


def _dominating(line: Line, entries: Sequence[Entry]) -> list[str]:
    return [
        each.name
        for each in entries
        if is_eligible(each)
        and _key(each.line) == _key(line)
        and _is_better(each.line, line)
        and _below(each.line.judged_cost, line.judged_cost)
    ]


def _key(line: Line) -> tuple[str, str, str, str | None]:
    return *line.done, line.judged_by, line.currency


def _is_better(one: Line, other: Line) -> bool:
    higher = one.judged_better == "higher"
    return _below(other.judged, one.judged) if higher else _below(one.judged, other.judged)


def _below(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or other is None:
        return False
    high = one.value if one.high is None else one.high
    low = other.value if other.low is None else other.low
    return high < low
