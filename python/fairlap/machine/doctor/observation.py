"""What happens on this machine right now: the kernel's counters at both ends of a second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from fairlap.machine.hardware.counters import (
    busy_ticks,
    cpu_ticks,
    pages_swapped,
    pressure_us,
    steal_share,
    thermal_events,
)
from fairlap.machine.root import THIS_MACHINE, Root, whole_number

_LEAST_CORES_LISTED = 0.02
_MOST_LISTED = 3


@dataclass(frozen=True)
class BusyProcess:
    pid: int
    name: str
    cores: float  # busy on average


@dataclass(frozen=True)
class Observed:
    """What happened meanwhile. None is what the kernel does not count."""

    seconds: float
    others_busy_cores: float = 0.0
    busiest: tuple[BusyProcess, ...] = ()
    steal_share: float | None = None
    waited_share: float | None = None  # of the time, at least one task waited for a core
    memory_waited_share: float | None = None
    pages_swapped: int | None = None
    thermal_events: int | None = None


@dataclass(frozen=True)
class _Counters:
    ticks: list[int]
    processes: dict[int, tuple[str, int]]
    cpu_pressure_us: int | None
    memory_pressure_us: int | None
    pages_swapped: int | None
    thermal_events: int | None


def observe(
    root: Root = THIS_MACHINE,
    seconds: float = 1.0,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Observed:
    """Sleeps in between, so that what it sees is the work of others."""
    before, began_s = _counters(root), now()
    pause(seconds)
    after, elapsed_s = _counters(root), max(now() - began_s, 1e-6)
    ticks_per_core = os.sysconf("SC_CLK_TCK") * elapsed_s
    gained = [max(late - early, 0) for early, late in zip(before.ticks, after.ticks, strict=False)]
    own = _ran(before, after, os.getpid()) if root.is_this_machine else 0
    return Observed(
        seconds=elapsed_s,
        others_busy_cores=max(busy_ticks(gained) - own, 0) / ticks_per_core,
        busiest=_busiest(before, after, ticks_per_core),
        steal_share=steal_share(gained),
        waited_share=_share(before.cpu_pressure_us, after.cpu_pressure_us, elapsed_s),
        memory_waited_share=_share(before.memory_pressure_us, after.memory_pressure_us, elapsed_s),
        pages_swapped=_gained(before.pages_swapped, after.pages_swapped),
        thermal_events=_gained(before.thermal_events, after.thermal_events),
    )


def _counters(root: Root) -> _Counters:
    return _Counters(
        cpu_ticks(root),
        {int(name): _process(root, name) for name in root.names("proc") if name.isdecimal()},
        pressure_us(root, "cpu"),
        pressure_us(root, "memory"),
        pages_swapped(root),
        thermal_events(root),
    )


def _process(root: Root, pid: str) -> tuple[str, int]:
    """Its name and the ticks it has run. The name is in brackets and may contain brackets itself."""
    text = root.text(f"proc/{pid}/stat")
    name = text.partition("(")[2].rpartition(")")[0]
    fields = text.rpartition(")")[2].split()
    ran = [whole_number(field) or 0 for field in fields[11:13]]  # in user mode and in the kernel
    return name, sum(ran)


def _busiest(before: _Counters, after: _Counters, ticks_per_core: float) -> tuple[BusyProcess, ...]:
    others = [
        BusyProcess(pid, name, _ran(before, after, pid) / ticks_per_core)
        for pid, (name, _) in after.processes.items()
        if pid != os.getpid()
    ]
    listed = [each for each in others if each.cores >= _LEAST_CORES_LISTED]
    return tuple(sorted(listed, key=lambda each: -each.cores)[:_MOST_LISTED])


def _ran(before: _Counters, after: _Counters, pid: int) -> int:
    """0 for a process that began meanwhile: its id may have been another's."""
    if pid not in before.processes or pid not in after.processes:
        return 0
    return max(after.processes[pid][1] - before.processes[pid][1], 0)


def _share(before_us: int | None, after_us: int | None, elapsed_s: float) -> float | None:
    gained = _gained(before_us, after_us)
    return None if gained is None else min(gained / 1e6 / elapsed_s, 1.0)


def _gained(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)
