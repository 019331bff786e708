"""What the sampler does not read: memory of the machine, and how often heat slowed its cores down."""

from __future__ import annotations

from fairlap.machine.doctor.watching import thermal_events
from fairlap.machine.memory import memory_bytes
from fairlap.machine.root import Root

NO_MEMORY = "/proc/meminfo does not tell it"
NO_HEAT = "no core counts how often it was slowed down for heat, as in most virtual machines"


def read_machine_files(root: Root) -> dict[tuple[str, str], float | str]:
    """By source and field; a text says why there is no number."""
    memory = memory_bytes(root)
    size, available = memory.get("MemTotal"), memory.get("MemAvailable")
    heat = thermal_events(root)
    return {
        ("memory", "used_bytes"): NO_MEMORY if size is None or available is None else float(size - available),
        ("memory", "size_bytes"): NO_MEMORY if size is None else float(size),
        ("heat", "slowdowns"): NO_HEAT if heat is None else float(heat),
    }
