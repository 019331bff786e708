"""A span of a device that was held while the host launched contains no launch gaps, and one that was not held does.

The two are different quantities, so only blocks in which all contestants were held alike are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlap.scenarios.process_result import ProcessResult


def held_alike(processes: Iterable[ProcessResult], quantity: str) -> bool:
    """Whether these processes of one block have this quantity behind the same gate, or do not have it."""
    timings = (process.timings.get(quantity) for process in processes)
    return len({timing.gate for timing in timings if timing is not None}) <= 1


def held_unlike(block: Mapping[str, ProcessResult], quantity: str) -> str:
    """Who was held and who was not, for a message."""
    gates = {name: process.timings[quantity].gate for name, process in block.items() if quantity in process.timings}
    without = [name for name, gate in gates.items() if gate == "none"]
    behind = [f"{name} behind {gate}" for name, gate in gates.items() if gate != "none"]
    return ", ".join([*behind, *(f"{name} without a gate" for name in without)])
