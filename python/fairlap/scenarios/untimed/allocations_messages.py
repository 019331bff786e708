"""The messages about what a call allocates.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from typing import ClassVar

from fairlap.meters.allocations import Allocations
from fairlap.scenarios.asking import Ask, Reply


class AllocationsCounted(Reply, frozen=True, tag="allocations_counted"):
    allocations: Allocations | None = None
    why: str = ""  # there is none


class CountAllocations(Ask[AllocationsCounted], frozen=True, tag="count_allocations"):
    """Call it a few times more, and count. Nothing of these calls is timed."""

    served_by: ClassVar[str] = "fairlap.scenarios.untimed.allocations:serve"
