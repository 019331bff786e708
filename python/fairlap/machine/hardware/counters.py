"""What the kernel has counted since the machine started: processor time, pressure, paging, thermal slowdowns.

``None`` is what this kernel does not count.
"""

from __future__ import annotations

from fairlap.machine.root import Root, whole_number

_STEAL, _GUEST = 7, 8  # places in the list of ticks; guest time, and what follows it, is part of user time already
_IDLE = (3, 4)  # idle, and waiting for a disk
_CPUS = "sys/devices/system/cpu"
_VM = "proc/vmstat"


def cpu_ticks(root: Root) -> list[int]:
    """Of all cores together, by kind of time as in ``/proc/stat``; empty where it cannot be read."""
    name, *fields = next(iter(root.lines("proc/stat")), "").split() or [""]
    ticks = [whole_number(field) for field in fields]
    return [tick for tick in ticks if tick is not None] if name == "cpu" and None not in ticks else []


def busy_ticks(ticks: list[int]) -> int:
    return sum(value for place, value in enumerate(ticks[:_GUEST]) if place not in (*_IDLE, _STEAL))


def idle_ticks(ticks: list[int]) -> int:
    return sum(ticks[place] for place in _IDLE if place < len(ticks))


def steal_ticks(root: Root) -> int | None:
    """Time of all cores that the hypervisor gave to others while something here wanted to run."""
    ticks = cpu_ticks(root)
    return ticks[_STEAL] if len(ticks) > _STEAL else None


def steal_share(ticks: list[int]) -> float | None:
    """Of all cores' time."""
    return ticks[_STEAL] / max(sum(ticks[:_GUEST]), 1) if len(ticks) > _STEAL else None


def pressure_us(root: Root, resource: str, tasks: str = "some") -> int | None:
    """Time in which at least one task, or with ``full`` every one, waited for ``cpu``, ``memory`` or ``io``."""
    lines = [line for line in root.lines(f"proc/pressure/{resource}") if line.startswith(f"{tasks} ")]
    return whole_number(lines[0].rpartition("total=")[2]) if lines and "total=" in lines[0] else None


def pages_swapped(root: Root) -> int | None:
    """Count the pages moved to and from the disk."""
    counted = root.named_numbers(_VM)
    moved = [counted[name] for name in ("pswpin", "pswpout") if name in counted]
    return sum(moved) if moved else None


def oom_kills(root: Root) -> int:
    """Count processes that the kernel ended because memory ran out; 0 also where it does not count them."""
    return root.named_numbers(_VM).get("oom_kill", 0)


def thermal_events(root: Root) -> int | None:
    """How often cores were slowed down because they were too hot."""
    cpus = [name for name in root.names(_CPUS) if name.removeprefix("cpu").isdecimal()]
    counts = [root.number(f"{_CPUS}/{name}/thermal_throttle/core_throttle_count") for name in cpus]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
