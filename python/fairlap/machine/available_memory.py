"""How much more memory processes here can take before something is swapped out or killed."""

from __future__ import annotations

from fairlap.machine.control_group import memory_groups, memory_limit_bytes
from fairlap.machine.hardware.kernel import memory_bytes
from fairlap.machine.root import THIS_MACHINE


def available_memory_bytes() -> int | None:
    """Of the machine, or of this process's control group where that has less left; None where nothing says."""
    memory = memory_bytes(THIS_MACHINE)
    left = [memory["MemAvailable"]] if "MemAvailable" in memory else []
    limit = memory_limit_bytes(THIS_MACHINE)
    if limit is not None:
        groups = map(_used, memory_groups(THIS_MACHINE))
        left += [max(limit - used, 0) for used in groups if used is not None]
    return min(left, default=None)


def _used(folder: str) -> int | None:
    """Without pages of files, which the kernel drops when memory is short."""
    counted = THIS_MACHINE.named_numbers(f"{folder}/memory.stat")
    return counted.get("anon", counted.get("total_rss"))
