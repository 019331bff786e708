"""What the machine did to whoever was measured, read by the parent from the kernel, blind to who that was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

# The names under which the noise gate knows them.
STEAL = "steal share"  # of all cores' time, taken by the hypervisor for others
RUN_QUEUE = "run queue"  # share of the time in which somebody waited for a core
THROTTLED = "throttled"  # seconds in which the control group was not allowed to run
INVOLUNTARY = "involuntary switches"  # of the contestant itself, per second

_STEAL_FIELD = 8
_STAT = Path("/proc/stat")
_PRESSURE = Path("/proc/pressure/cpu")


class Watch:
    """From its making to ``readings``. What the kernel does not tell is absent."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._before = _counters()

    def readings(self) -> dict[str, float]:
        elapsed_s = max(time.monotonic() - self._began_s, 1e-9)
        grew = {name: value - self._before[name] for name, value in _counters().items() if name in self._before}
        found = {}
        if "steal_ticks" in grew:
            found[STEAL] = grew["steal_ticks"] / os.sysconf("SC_CLK_TCK") / elapsed_s / (os.cpu_count() or 1)
        if "waited_us" in grew:
            found[RUN_QUEUE] = grew["waited_us"] / 1e6 / elapsed_s
        if "throttled_us" in grew:
            found[THROTTLED] = grew["throttled_us"] / 1e6
        return found


def _counters() -> dict[str, float]:
    found: dict[str, float] = {}
    for name, read in (("steal_ticks", _steal), ("waited_us", _waited), ("throttled_us", _throttled)):
        value = _or_none(read)
        if value is not None:
            found[name] = value
    return found


def _or_none(read: Callable[[], float]) -> float | None:
    try:
        return read()
    except (OSError, ValueError, IndexError, KeyError, StopIteration):
        return None


def _steal() -> float:
    return float(_STAT.read_text().split("\n", 1)[0].split()[_STEAL_FIELD])


def _waited() -> float:
    some = _PRESSURE.read_text().split("\n", 1)[0]
    return float(some.rpartition("total=")[2])


def _throttled() -> float:
    """Of the control group this process lives in (version 2 of control groups)."""
    group = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    stat = Path(f"/sys/fs/cgroup{group}/cpu.stat").read_text()
    return float(dict(line.split() for line in stat.splitlines())["throttled_usec"])
