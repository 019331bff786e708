"""What an interrupted run leaves to the one that goes on with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from fairlap.race.laps import Lap
from fairlap.race.plan import Plan


def whole_blocks(plan: Plan, laps: Sequence[Lap]) -> list[Lap]:
    """A block that was broken off is run again: all of its contestants have to take turns at one time."""
    ran = Counter(lap.block for lap in laps)
    whole = {block.number for block in plan.blocks if ran[block.number] == len(block.order)}
    return [lap for lap in laps if lap.block in whole]


def all_blocks_ran(plan: Plan, laps: Sequence[Lap]) -> bool:
    return {lap.block for lap in whole_blocks(plan, laps)} == {block.number for block in plan.blocks}


def search_is_over(plan: Plan, laps: Sequence[Lap]) -> bool:
    """For the smallest memory of everyone who finished, where it was asked for."""
    if not plan.min_memory:
        return True
    finished = {(lap.contestant, lap.work) for lap in laps if lap.finished and lap.conditions == plan.headline}
    return finished <= {(lap.contestant, lap.work) for lap in laps if lap.smallest_memory}


def known(plan: Plan, laps: Sequence[Lap]) -> set[bytes]:
    """What two records of one run are compared by."""
    whole = whole_blocks(plan, laps)
    smallest = [(lap.block, lap.contestant, lap.smallest_memory) for lap in whole if lap.smallest_memory]
    return {*map(measured, whole), *map(msgspec.json.encode, smallest)}


def measured(lap: Lap) -> bytes:
    """Without its smallest memory, which a lap gets later than all the rest."""
    return msgspec.json.encode(msgspec.structs.replace(lap, smallest_memory=None))
