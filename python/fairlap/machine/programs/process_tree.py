"""A process with everything that it started, wherever that went: stopped, continued, timed and ended as one.

A process that loses its parent is handed to the nearest ancestor that is a subreaper (Linux), so below a subreaper the
kernel's lists of children reach every descendant: what forked twice, leads a session of its own or has another
environment. Elsewhere, and below a root that is no subreaper, what lost its parent is not reached.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence

from fairlap.machine.programs.processes import DEAD, lives, process_ids, process_stat, thread_states

_PR_SET_CHILD_SUBREAPER = 36
_STILL = ("T", "t", "D", *DEAD)
_STOPPED_WITHIN_S = 1.0
_LOOK_EVERY_S = 5e-5
_LOOK_AT_THE_DYING_EVERY_S = 1e-3


def become_subreaper() -> bool:
    """Whether the orphans among this process's descendants are handed to it from now on."""
    if sys.platform != "linux":
        return False
    try:
        return int(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def descendants(pid: int) -> list[int]:
    """Zombies included; each parent before its children. Empty where the system does not list processes."""
    found = [pid]
    for each in found:
        found += children(each)
    return found[1:]


def children(pid: int) -> list[int]:
    """Of all of its threads. Without CONFIG_PROC_CHILDREN every process is asked for its parent."""
    tasks = f"/proc/{pid}/task"
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(tasks):  # noqa: PTH208  (twice as fast)
            try:
                file = open(f"{tasks}/{task}/children", "rb", buffering=0)  # noqa: PTH123, SIM115
            except OSError:
                if os.path.isdir(f"{tasks}/{task}"):  # noqa: PTH112
                    return [each for each in process_ids() if (stat := process_stat(each)) and stat.parent == pid]
                continue  # the thread has ended
            with file:
                found += map(int, file.read().split())
    return found


_LISTED = os.path.isdir("/proc/self/task")  # noqa: PTH112


class ProcessTree:
    """What a process started, and the process itself unless it is only the guardian of ``first``, its first child.

    Both lead a process group, which is all that is reached where the system does not list processes.
    """

    def __init__(self, root: int, first: int | None = None) -> None:
        self._root, self._first = root, first or root
        self._frozen: list[int] = []
        self._frozen_cpu_s: dict[int, float] = {}

    def freeze(self, within_s: float) -> list[int]:
        """Stop every thread, until no process is new. Return the processes that could not be stopped in time.

        What is stopped does not fork, so what it has started is complete.
        """
        deadline_s = time.monotonic() + within_s
        self._frozen = [self._first]
        fresh = self._frozen
        while fresh and time.monotonic() < deadline_s:
            for pid in fresh:
                _send(pid, signal.SIGSTOP)
            while not all(map(_is_still, fresh)) and time.monotonic() < deadline_s:
                time.sleep(_LOOK_EVERY_S)
            new = self._started_by(self._frozen)
            # One of several may have continued another before it was stopped itself.
            continued = [pid for pid in self._frozen if not _is_still(pid)] if len(self._frozen) > 1 or new else []
            self._frozen += new
            fresh = new + continued
        self._frozen_cpu_s = _cpu_s(self._frozen)
        return [pid for pid in self._frozen if not _is_still(pid)] or fresh

    def thaw(self) -> dict[int, float]:
        """Continue the processes, and return the CPU time that each one used while it was frozen.

        It can use some only if something continued it.
        """
        used_s = {pid: now_s - self._frozen_cpu_s[pid] for pid, now_s in _cpu_s(list(self._frozen_cpu_s)).items()}
        for pid in self._frozen:
            _send(pid, signal.SIGCONT)
        return used_s

    def cpu_of_started_s(self) -> dict[int, float]:
        """Of every process but the first."""
        return _cpu_s([pid for pid in self._members() if pid != self._first])

    def kill(self, within_s: float) -> tuple[int, ...]:
        """Kill all but a guardian, which has to outlive what is handed to it.

        Returns the processes that the kernel did not end in time.
        """
        deadline_s = time.monotonic() + within_s
        self.freeze(_STOPPED_WITHIN_S)  # so that none is handed away while its parent is killed
        while left := [pid for pid in self._members() if lives(pid)]:
            if time.monotonic() > deadline_s:
                return tuple(left)
            for pid in reversed(left):
                _send(pid, signal.SIGKILL)
            time.sleep(_LOOK_AT_THE_DYING_EVERY_S)
        return ()

    def _members(self) -> list[int]:
        started = descendants(self._root)
        return started if self._first != self._root else [self._root, *started]

    def _started_by(self, known: list[int]) -> list[int]:
        """Find started processes that are not known.

        Children are asked before their parents and the root last: a process whose parent ends meanwhile is handed
        upwards, and is found there. What has ended since may have started another.
        """
        found = [child for parent in dict.fromkeys((*reversed(known), self._root)) for child in children(parent)]
        return [pid for pid in dict.fromkeys(found) if pid not in known]


def _send(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.kill if _LISTED else os.killpg)(pid, which)


def _is_still(pid: int) -> bool:
    """Check the state of every thread, since the state of a process is that of its first thread alone.

    What waits in the kernel for a device or for a child of vfork stops before it computes.
    """
    return all(state in _STILL for state in thread_states(pid))


def _cpu_s(pids: Sequence[int]) -> dict[int, float]:
    """Of all threads, in user and in system mode, without the processes that have ended."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives on Linux
    return found
