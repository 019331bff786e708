"""What the machine did while a process was measured, read by its parent from the kernel's counters.

The parent does not use which contestant ran, so that leaving out noisy blocks favours none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fairlap.machine.control_group import throttled
from fairlap.machine.counters import pressure_us, steal_ticks
from fairlap.machine.processes import waited_s
from fairlap.machine.root import THIS_MACHINE, Root

# The names under which the noise gate knows them.
STEAL = "steal share"  # of all cores' time, taken by the hypervisor for others
RUN_QUEUE = "run queue"  # share of the time in which at least one task of the machine waited for a core
WAITED = "waited for a core"  # the contestant's threads, as a share of the time in which it was measured
WAITED_IN_EPOCHS = "waited for a core in epochs"  # likewise, of training to a score
OWN_IN_EPOCHS = "fairlap in epochs"  # CPU time of the process that asks for them, as a share of a core
THROTTLED = "throttled"  # seconds in which the quota of the control group stopped it
INVOLUNTARY = "involuntary switches"  # of the contestant itself, per second

OF_BLOCKS = (STEAL, RUN_QUEUE, THROTTLED, INVOLUNTARY)  # those for which a block may be left out


class DisturbanceMeter:
    """From its making to ``readings``. What the kernel does not count is absent."""

    def __init__(self, root: Root = THIS_MACHINE) -> None:
        self._root = root
        self._began_s = time.monotonic()
        self._before = _counters(root)

    def readings(self) -> dict[str, float]:
        elapsed_s = max(time.monotonic() - self._began_s, 1e-9)
        share_of = {
            STEAL: os.sysconf("SC_CLK_TCK") * elapsed_s * (os.cpu_count() or 1),
            RUN_QUEUE: 1e6 * elapsed_s,
            THROTTLED: 1.0,
        }
        before = self._before
        return {
            name: (value - before[name]) / share_of[name]
            for name, value in _counters(self._root).items()
            if name in before
        }


class WaitingMeter:
    """How long the threads of one contestant wait for cores while it has the machine. The run queue of a block is of
    all its contestants, and one whose threads outnumber the cores crowds it by itself."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before_s = self._threads_s()
        self._seen_s = dict(self._before_s or {})  # by thread; one that has ended keeps what was seen last
        self._turns_s = 0.0

    def _threads_s(self) -> dict[int, float] | None:
        return None if self._pid is None else waited_s(self._pid)

    @contextmanager
    def turn(self) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            yield
        finally:
            self._turns_s += time.monotonic() - began_s
            self._seen_s |= self._threads_s() or {}

    def readings(self) -> dict[str, float]:
        after_s = self._threads_s()
        if self._before_s is None or after_s is None or self._turns_s <= 0:
            return {}
        waited_s = sum((self._seen_s | after_s).values()) - sum(self._before_s.values())
        return {WAITED: max(waited_s, 0.0) / self._turns_s}


class EpochsMeter(WaitingMeter):
    """What took cores from a contestant while it trained for whole epochs."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(pid)
        self._own_s = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        began_s = time.process_time()
        try:
            with super().turn():
                yield
        finally:
            self._own_s += time.process_time() - began_s

    def readings(self) -> dict[str, float]:
        if self._turns_s <= 0:
            return {}
        found = super().readings()
        waited = {WAITED_IN_EPOCHS: found[WAITED]} if WAITED in found else {}
        return {**waited, OWN_IN_EPOCHS: self._own_s / self._turns_s}


def _counters(root: Root) -> dict[str, float]:
    stopped = throttled(root)
    counted = {
        STEAL: steal_ticks(root),
        RUN_QUEUE: pressure_us(root, "cpu"),
        THROTTLED: stopped.seconds if stopped else None,
    }
    return {name: value for name, value in counted.items() if value is not None}
