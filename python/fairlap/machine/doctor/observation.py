"""What goes on here right now: the kernel's counters at both ends of a second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from fairlap.machine.root import THIS_MACHINE, Root, whole_number

_IDLE = (3, 4)  # idle, and waiting for a disk
_STEAL = 7
_GUEST = 8  # and what follows is counted in user time already
_LEAST_SHARE_TOLD = 0.02
_MOST_TOLD = 3
_THERMAL = "thermal_throttle/core_throttle_count"


@dataclass(frozen=True)
class BusyProcess:
    pid: int
    name: str
    cores: float  # busy on average


@dataclass(frozen=True)
class Watched:
    """What happened in the meantime. None is what the kernel does not tell."""

    seconds: float
    others_busy_cores: float = 0.0
    busiest: tuple[BusyProcess, ...] = ()
    steal_share: float | None = None
    waited_share: float | None = None  # of the time, somebody who wanted a core waited for one
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


def watch(
    root: Root = THIS_MACHINE,
    seconds: float = 1.0,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Watched:
    """Sleeps in between, so that what is seen is the work of others."""
    before, began_s = _counters(root), now()
    pause(seconds)
    after, elapsed_s = _counters(root), max(now() - began_s, 1e-6)
    ticks_per_core = os.sysconf("SC_CLK_TCK") * elapsed_s
    grew = [max(late - early, 0) for early, late in zip(before.ticks, after.ticks, strict=False)]
    busy = sum(value for place, value in enumerate(grew[:_GUEST]) if place not in (*_IDLE, _STEAL))
    own = _grown(before, after, os.getpid()) if root.is_this_machine else 0
    return Watched(
        seconds=elapsed_s,
        others_busy_cores=max(busy - own, 0) / ticks_per_core,
        busiest=_busiest(before, after, ticks_per_core),
        steal_share=grew[_STEAL] / max(sum(grew[:_GUEST]), 1) if len(grew) > _STEAL else None,
        waited_share=_share(before.cpu_pressure_us, after.cpu_pressure_us, elapsed_s),
        memory_waited_share=_share(before.memory_pressure_us, after.memory_pressure_us, elapsed_s),
        pages_swapped=_difference(before.pages_swapped, after.pages_swapped),
        thermal_events=_difference(before.thermal_events, after.thermal_events),
    )


def _counters(root: Root) -> _Counters:
    ticks = [whole_number(field) or 0 for field in next(iter(root.lines("proc/stat")), "").split()[1:]]
    swapped = dict(line.split(" ", 1) for line in root.lines("proc/vmstat") if line.startswith("pswp"))
    pages = [whole_number(value) for value in swapped.values()]
    return _Counters(
        ticks,
        {int(name): _of_process(root, name) for name in root.names("proc") if name.isdecimal()},
        _pressure_us(root, "cpu"),
        _pressure_us(root, "memory"),
        sum(page or 0 for page in pages) if pages else None,
        thermal_events(root),
    )


def thermal_events(root: Root) -> int | None:
    """How often cores were slowed down for heat since the machine started; None where it is not counted."""
    cpus = [name for name in root.names("sys/devices/system/cpu") if name.removeprefix("cpu").isdecimal()]
    told = [root.number(f"sys/devices/system/cpu/{name}/{_THERMAL}") for name in cpus]
    known = [count for count in told if count is not None]
    return sum(known) if known else None


def _of_process(root: Root, pid: str) -> tuple[str, int]:
    """Its name and the ticks it has run. The name stands in brackets and may hold brackets itself."""
    text = root.text(f"proc/{pid}/stat")
    name = text.partition("(")[2].rpartition(")")[0]
    fields = text.rpartition(")")[2].split()
    ran = [whole_number(field) or 0 for field in fields[11:13]]  # in user mode and in the kernel
    return name, sum(ran)


def _busiest(before: _Counters, after: _Counters, ticks_per_core: float) -> tuple[BusyProcess, ...]:
    others = [
        BusyProcess(pid, name, _grown(before, after, pid) / ticks_per_core)
        for pid, (name, _) in after.processes.items()
        if pid != os.getpid()
    ]
    worth_telling = [each for each in others if each.cores >= _LEAST_SHARE_TOLD]
    return tuple(sorted(worth_telling, key=lambda each: -each.cores)[:_MOST_TOLD])


def _grown(before: _Counters, after: _Counters, pid: int) -> int:
    """Nothing for a process that began meanwhile: its id may have been another's."""
    if pid not in before.processes or pid not in after.processes:
        return 0
    return max(after.processes[pid][1] - before.processes[pid][1], 0)


def _pressure_us(root: Root, what: str) -> int | None:
    some = next(iter(root.lines(f"proc/pressure/{what}")), "")
    return whole_number(some.rpartition("total=")[2]) if "total=" in some else None


def _share(before_us: int | None, after_us: int | None, elapsed_s: float) -> float | None:
    grew = _difference(before_us, after_us)
    return None if grew is None else min(grew / 1e6 / elapsed_s, 1.0)


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)
