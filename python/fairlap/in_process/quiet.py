"""Waiting until a process has nothing left to do, so that nobody is charged for a neighbour's late work."""

from __future__ import annotations

import threading
import time
from pathlib import Path

_LOOK_EVERY_S = 0.0005
_BUSY_SHARE = 0.2  # of one core; a thread with work to do takes all of it
_TASKS = Path("/proc/self/task")


def wait_until_quiet(at_most_s: float) -> float:
    """Sleep until no other thread has anything to do; the CPU time that they used until then."""
    began_s = time.perf_counter()
    went_on_s = 0.0
    while (look_s := time.perf_counter()) - began_s < at_most_s:
        before_s = _cpu_of_others_s()
        time.sleep(_LOOK_EVERY_S)
        others_wait = _others_want_a_core()
        used_s = _cpu_of_others_s() - before_s
        if not others_wait and used_s < _BUSY_SHARE * (time.perf_counter() - look_s):
            break
        went_on_s += used_s
    return went_on_s


def _cpu_of_others_s() -> float:
    """The CPU time of all threads but this one, whose looking around is not what is asked about."""
    return time.process_time() - time.thread_time()


def _others_want_a_core() -> bool:
    """Whether the kernel has another thread of this process running or waiting for a core.

    On a crowded machine a thread with work to do may use no CPU time for a while. False where there is no /proc.
    """
    own = str(threading.get_native_id())
    try:
        return any(_state(task) == "R" for task in _TASKS.iterdir() if task.name != own)
    except OSError:
        return False


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""  # it has just ended
