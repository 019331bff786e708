"""A plan whose race also has to show whether requirements on other quantities than the judged one are met."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.models.task_metrics import found_metric
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.shared_processes import with_fresh_processes
from fairlap.verdict import QUANTITIES_COUNTED, QUANTITIES_OF_A_START, RequiredChange, changes_among, require_once


# Requirements of two kinds in one list: bounds on changes against the baseline, and limits on figures.
def changes_and_limits(require: str) -> tuple[tuple[RequiredChange, ...], str]:
    """Separate ``memory_peak<=+2%``, a change, from ``latency_p99<20ms`` and ``mcc>=-0.1``: scores can be below 0."""
    return changes_among(require, lambda name: found_metric(name) is not None)


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
