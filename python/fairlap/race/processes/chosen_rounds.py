"""In how many rounds the processes of a block take turns: as planned, or as the blocks before it make worthwhile.

Works that share processes may have fewer than usual, since there a round costs more than the start of a work.

What is chosen follows from the plan and the stored results of earlier blocks alone, so a race that is resumed chooses
the same; a race that is run again has the numbers in its plan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from fairlap import verdict
from fairlap.race.planning.plan import Block, Plan
from fairlap.scenarios.process_result import ProcessResult

_MARGIN = 0.02  # of equivalence, by default


def rounds_of(plan: Plan, block: Block, processes: Sequence[ProcessResult]) -> int:
    usual = plan.measuring.rounds
    if block.rounds is not None:
        return block.rounds
    work = plan.works[block.work]
    if not plan.scenario(work).judges_rounds:
        return usual
    work_id = work.id
    blocks: dict[int, list[ProcessResult]] = defaultdict(list)
    for process in processes:
        if process.work_id == work_id and process.conditions == block.conditions and process.block < block.number:
            blocks[process.block].append(process)
    raced = [found for own in blocks.values() if (found := _raced(own, len(block.order))) is not None]
    chosen = verdict.worthwhile_rounds(raced, usual=usual, margin=_MARGIN, until_decided=plan.until_decided)
    if chosen > usual or plan.until_decided or block.processes_of is None:
        return chosen
    alike = sum((each.work, each.conditions) == (block.work, block.conditions) for each in plan.blocks)
    return verdict.sufficient_rounds(raced, usual=usual, margin=_MARGIN, blocks=alike)


def with_rounds_of(plan: Plan, processes: Sequence[ProcessResult]) -> Plan:
    """Return the plan of a race that ran, with the rounds that each of its blocks had."""
    had: dict[int, Counter[int]] = defaultdict(Counter)
    for process in processes:
        if process.rounds_ns:
            had[process.block][len(process.rounds_ns)] += 1
    blocks = tuple(
        msgspec.structs.replace(block, rounds=had[block.number].most_common(1)[0][0]) if block.number in had else block
        for block in plan.blocks
    )
    return msgspec.structs.replace(plan, blocks=blocks)


def _raced(processes: Sequence[ProcessResult], contestants: int) -> verdict.RacedBlock | None:
    """None where a contestant is missing, and where they did not take turns."""
    rounds = {len(process.rounds_ns) for process in processes if process.finished}
    if len(processes) < max(contestants, 2) or len(rounds) != 1 or not all(each.finished for each in processes):
        return None
    [count] = rounds
    in_rounds_s = sum(process.in_rounds_s for process in processes)
    if not count or not in_rounds_s:
        return None
    whole_s = sum(process.elapsed_s for process in processes)
    log_times = np.log([process.rounds_ns for process in processes])
    return verdict.RacedBlock(log_times, max(whole_s - in_rounds_s, 0.0), in_rounds_s / count)
