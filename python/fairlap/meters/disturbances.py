"""What the machine did while a process was measured, read by its parent from the kernel's counters.

The parent does not use which contestant ran, so that leaving out noisy blocks favours none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fairlap.machine.control_group import throttled
from fairlap.machine.hardware.counters import busy_ticks, cpu_ticks, idle_ticks, pressure_us, steal_ticks
from fairlap.machine.programs.processes import process_stat, ran_s, waited_s
from fairlap.machine.root import THIS_MACHINE, Root

# The names under which the noise gate knows them.
STEAL = "steal share"  # of all cores' time, taken by the hypervisor for others
RUN_QUEUE = "run queue"  # share of the time in which at least one task of the machine waited for a core
WAITED = "waited for a core"  # the contestant's threads, as a share of the time in which it was measured
TAKEN = "taken from calls"  # by others, in cores: of a contestant whose calls start threads or programs that end
WAITED_IN_EPOCHS = "waited for a core in epochs"  # likewise, of training to a score
OWN_IN_EPOCHS = "fairlap in epochs"  # CPU time of the process that asks for them, as a share of a core
THROTTLED = "throttled"  # seconds in which the quota of the control group stopped it
INVOLUNTARY = "involuntary switches"  # of the contestant itself, per second

OF_BLOCKS = (STEAL, RUN_QUEUE, THROTTLED, INVOLUNTARY)  # those for which a block may be left out

_LEAST_COUNTED_S = 0.25  # the kernel counts CPU time in ticks of 10 ms
_UNSEEN = 0.2  # of the CPU time of a contestant


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
    """How long the threads of one contestant wait for cores while it has the machine.

    The run queue of a block is of all its contestants, and one whose threads outnumber the cores crowds it by itself.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before_s = self._threads_s()
        self._unseen = UnseenThreads(pid)
        self._seen_s = dict(self._before_s or {})  # by thread; one that has ended keeps what was seen last
        self._turns_s = 0.0

    def _threads_s(self) -> dict[int, float] | None:
        return None if self._pid is None else waited_s(self._pid)

    @contextmanager
    def turn(self) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            with self._unseen.turn():
                yield
        finally:
            self._turns_s += time.monotonic() - began_s
            self._seen_s |= self._threads_s() or {}

    def readings(self) -> dict[str, float]:
        after_s = self._threads_s()
        if self._before_s is None or after_s is None or self._turns_s <= 0:
            return {}
        waited_s = sum((self._seen_s | after_s).values()) - sum(self._before_s.values())
        return {WAITED: max(waited_s, 0.0) / self._turns_s} | self._unseen.readings(self._turns_s)


class UnseenThreads:
    """What others took while a contestant's calls ran threads or programs that end with the call.

    The kernel forgets how long those waited, but not their CPU time: what the machine did besides was for others, and
    was taken from the contestant as far as no core was idle.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before = self._own_s()
        self._busy_s = self._idle_s = 0.0

    def _own_s(self) -> tuple[float, float] | None:
        """Of all threads and programs that there were, and of the threads that there are."""
        if self._pid is None or (stat := process_stat(self._pid)) is None or (threads := ran_s(self._pid)) is None:
            return None
        return stat.cpu_s + stat.ended_children_cpu_s, sum(threads.values())

    @contextmanager
    def turn(self) -> Iterator[None]:
        before = cpu_ticks(THIS_MACHINE)
        try:
            yield
        finally:
            after = cpu_ticks(THIS_MACHINE)
            tick_s = 1 / os.sysconf("SC_CLK_TCK")
            self._busy_s += (busy_ticks(after) - busy_ticks(before)) * tick_s
            self._idle_s += (idle_ticks(after) - idle_ticks(before)) * tick_s

    def readings(self, turns_s: float) -> dict[str, float]:
        after = self._own_s()
        if self._before is None or after is None or turns_s < _LEAST_COUNTED_S or self._busy_s <= 0:
            return {}
        own_s, seen_s = after[0] - self._before[0], after[1] - self._before[1]
        if own_s - seen_s <= _UNSEEN * own_s:
            return {}
        others = max(self._busy_s - own_s, 0.0) / turns_s
        return {TAKEN: others * max(1 - self._idle_s / turns_s, 0.0)}


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
