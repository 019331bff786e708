"""A plan whose race also has to show whether requirements on other quantities than the judged one are met."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.race.planning.plan import Plan
from fairlap.race.planning.shared_processes import with_fresh_processes
from fairlap.verdict import QUANTITIES_COUNTED, QUANTITIES_OF_A_START, RequiredChange, require_once

_OF_A_START = frozenset(each.key for each in QUANTITIES_OF_A_START)
_COUNTED = frozenset(each.key for each in QUANTITIES_COUNTED)


def with_required(plan: Plan, required: Sequence[RequiredChange]) -> Plan:
    """Add requirements against the baseline of its gate to those that it has.

    They may be on what a process shows of its first work alone, such as its memory, so each work has its own. For the
    times to get ready, all processes start alone, which is slower; side by side they would disturb each other.
    """
    required = (*plan.required, *required)
    require_once(required)
    counts = plan.count_allocations or any(each.quantity in _COUNTED for each in required)
    plan = msgspec.structs.replace(plan, required=required, count_allocations=counts)
    plan = with_fresh_processes(plan) if required else plan
    if not any(each.quantity in _OF_A_START for each in required):
        return plan
    return msgspec.structs.replace(
        plan, blocks=tuple(msgspec.structs.replace(block, started="alone") for block in plan.blocks)
    )
