"""Contestants that a race with a time limit no longer runs, because they can no longer be ranked on a work."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.race.counted_blocks import is_ranked
from fairlap.race.planning.plan import Block, Plan
from fairlap.scenarios.process_result import ProcessResult

_CHANCES = 2  # processes in which it may show that it can finish


def contestants_of(plan: Plan, block: Block, processes: Sequence[ProcessResult]) -> list[str]:
    """Those that run in this block, in its order, by what became of them in earlier blocks of the same work."""
    names = [plan.contestants[place].text for place in block.order]
    if not plan.until_decided:
        return names
    work_id = plan.works[block.work].id
    before = [each for each in processes if each.work_id == work_id and each.block < block.number]
    return [name for name in names if not _is_out([each for each in before if each.contestant == name])]


def _is_out(processes: Sequence[ProcessResult]) -> bool:
    if any(each.outcome in ("disqualified", "not_installed", "unsupported") for each in processes):
        return True
    return len(processes) >= _CHANCES and not is_ranked(processes)
