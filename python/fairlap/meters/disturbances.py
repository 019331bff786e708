"""What the machine did while a process was measured, read by its parent from the kernel's counters.

The parent does not use which contestant ran, so that leaving out noisy blocks favours none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fairlap.machine.control_group import throttled
from fairlap.machine.hardware.counters import busy_ticks, cpu_ticks, idle_ticks, pressure_us, steal_ticks
from fairlap.machine.programs.process_tree import descendants
from fairlap.machine.programs.processes import process_stat, ran_s, waited_s
from fairlap.machine.root import THIS_MACHINE, Root

# The names under which the noise gate knows them.
STEAL = "steal share"  # of all cores' time, taken by the hypervisor for others
RUN_QUEUE = "run queue"  # share of the time in which at least one task of the machine waited for a core
WAITED = "waited for a core"  # the contestant's threads, as a share of the time in which it was measured
TAKEN = "taken from calls"  # by others, in cores: of a contestant whose work is done by what ends or by processes
OTHERS = "used by others"  # in cores; threads that waited for longer waited for each other
OWN = "fairlap itself"  # CPU time of the process that asks for the work, as a share of a core
MEASURED = "measured"  # seconds, where they are not those of timed calls
THROTTLED = "throttled"  # seconds in which the quota of the control group stopped it
INVOLUNTARY = "involuntary switches"  # of the contestant itself, per second

OF_BLOCKS = (STEAL, RUN_QUEUE, THROTTLED, INVOLUNTARY)  # those for which a block may be left out

_LEAST_COUNTED_S = 0.25  # the kernel counts CPU time in ticks of 10 ms
_UNSEEN = 0.2  # of the CPU time of a contestant
_LEAST_WORKED = 0.05  # of its turns

# Seconds of turns, which make the readings.
_TURNS, _WITHOUT_WORK, _WAITED = "turns", "without work", "waited"
_BUSY, _IDLE = "busy cores", "idle cores"
_OWN, _SEEN = "own CPU time", "own CPU time of threads seen"


class DisturbanceMeter:
    """From its making to ``readings``. What the kernel does not count is absent."""

    def __init__(self, root: Root = THIS_MACHINE) -> None:
        self._root = root
        self._began_s = time.monotonic()
        self._before = _counters(root)

    def readings(self) -> dict[str, float]:
        elapsed_s = max(time.monotonic() - self._began_s, 1e-9)
        return _shares(_since(self._before, self._root), elapsed_s)


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

    def seconds(self) -> dict[str, float]:
        """Return the seconds that make its readings, by their names below; empty for a process that is gone."""
        after_s = self._threads_s()
        if self._before_s is None or after_s is None or self._turns_s <= 0:
            return {}
        waited_s = sum((self._seen_s | after_s).values()) - sum(self._before_s.values())
        return {_TURNS: self._turns_s, _WAITED: max(waited_s, 0.0), **self._unseen.seconds()}

    def readings(self) -> dict[str, float]:
        seconds = self.seconds()
        return {**_waiting(seconds), **_taken(seconds)} if seconds else {}


class UnseenThreads:
    """What others took while a contestant's work was done by processes, or by threads that end with the call.

    The kernel forgets how long those waited, but not their CPU time: what the machine did besides was for others, and
    was taken from the contestant as far as no core was idle.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._before = self._own_s()
        self._busy_s = self._idle_s = 0.0

    def _own_s(self) -> tuple[float, float] | None:
        """Of all threads and processes that there were, and of the process's threads that there are."""
        if self._pid is None or (stat := process_stat(self._pid)) is None or (threads := ran_s(self._pid)) is None:
            return None
        stats = [stat, *(each for pid in descendants(self._pid) if (each := process_stat(pid)) is not None)]
        return sum(each.cpu_s + each.ended_children_cpu_s for each in stats), sum(threads.values())

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

    def seconds(self) -> dict[str, float]:
        after = self._own_s()
        if self._before is None or after is None:
            return {}
        own_s, seen_s = after[0] - self._before[0], after[1] - self._before[1]
        return {_BUSY: self._busy_s, _IDLE: self._idle_s, _OWN: own_s, _SEEN: seen_s}

    def readings(self, turns_s: float) -> dict[str, float]:
        return _taken({_TURNS: turns_s, **self.seconds()})


class StepsMeter:
    """What the machine did while a contestant did what follows its turns, such as epochs, trials or answers.

    A contestant's steps are metered each for itself: others take theirs in between, and fairlap checks answers.
    """

    def __init__(self, pid: int | None, root: Root = THIS_MACHINE) -> None:
        self._pid, self._root = pid, root
        self._seconds: dict[str, float] = {}
        self._counted: dict[str, float] = {}
        self._asking_s = self._elapsed_s = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        waiting, before = WaitingMeter(self._pid), _counters(self._root)
        began_s = time.monotonic()
        try:
            with waiting.turn():
                own_s = time.process_time()
                try:
                    yield
                finally:
                    self._asking_s += time.process_time() - own_s
        finally:
            self._elapsed_s += time.monotonic() - began_s
            _add(self._counted, _since(before, self._root))
            _add(self._seconds, waiting.seconds())

    def leave_out(self, seconds: float) -> None:
        """Count only the rest as time in which it had work: in these there was nothing to do."""
        _add(self._seconds, {_WITHOUT_WORK: seconds})

    def readings(self) -> dict[str, float]:
        if self._elapsed_s <= 0:
            return {}
        found = _shares(self._counted, self._elapsed_s)
        found |= {OWN: self._asking_s / self._elapsed_s, MEASURED: self._elapsed_s}
        if self._seconds.get(_TURNS, 0.0) > 0:
            found |= {**_waiting(self._seconds), **_taken(self._seconds), **_others(self._seconds)}
        return found


def _waiting(seconds: Mapping[str, float]) -> dict[str, float]:
    worked_s = max(seconds[_TURNS] - seconds.get(_WITHOUT_WORK, 0.0), _LEAST_WORKED * seconds[_TURNS])
    return {WAITED: seconds[_WAITED] / worked_s}


def _taken(seconds: Mapping[str, float]) -> dict[str, float]:
    """Of a contestant of which much is done by what its own threads do not show."""
    others = _others(seconds)
    if not others or seconds[_OWN] - seconds[_SEEN] <= _UNSEEN * seconds[_OWN]:
        return {}
    return {TAKEN: others[OTHERS] * max(1 - seconds[_IDLE] / seconds[_TURNS], 0.0)}


def _others(seconds: Mapping[str, float]) -> dict[str, float]:
    if seconds[_TURNS] < _LEAST_COUNTED_S or seconds.get(_BUSY, 0.0) <= 0:
        return {}
    return {OTHERS: max(seconds[_BUSY] - seconds[_OWN], 0.0) / seconds[_TURNS]}


def _counters(root: Root) -> dict[str, float]:
    stopped = throttled(root)
    counted = {
        STEAL: steal_ticks(root),
        RUN_QUEUE: pressure_us(root, "cpu"),
        THROTTLED: stopped.seconds if stopped else None,
    }
    return {name: value for name, value in counted.items() if value is not None}


def _since(before: Mapping[str, float], root: Root) -> dict[str, float]:
    return {name: value - before[name] for name, value in _counters(root).items() if name in before}


def _shares(counted: Mapping[str, float], elapsed_s: float) -> dict[str, float]:
    share_of = {
        STEAL: os.sysconf("SC_CLK_TCK") * elapsed_s * (os.cpu_count() or 1),
        RUN_QUEUE: 1e6 * elapsed_s,
        THROTTLED: 1.0,
    }
    return {name: value / share_of[name] for name, value in counted.items()}


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        sums[name] = sums.get(name, 0.0) + value
