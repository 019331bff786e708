"""Wait until the other threads of this process are idle, so that no callable pays for another's late work."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path

_LOOK_EVERY_S = 0.0005
_BUSY_SHARE = 0.2  # of one core; a thread with work to do takes all of it
_RESTED_S = 20e-6  # the two clocks are not read at the same time
_TASKS = Path("/proc/self/task")


def wait_until_quiet(at_most_s: float, cpu_of_others_before_s: float = -math.inf) -> float:
    """Sleep until no other thread has anything to do; return the CPU time that they used until then.

    Nothing needs to be awaited where they have used none since the given reading of their CPU time.
    """
    rested = cpu_of_others_s() - cpu_of_others_before_s < _RESTED_S
    if rested and _TASKS.is_dir() and not _others_want_a_core():
        return 0.0
    began_s = time.perf_counter()
    used_by_others_s = 0.0
    while (look_s := time.perf_counter()) - began_s < at_most_s:
        before_s = cpu_of_others_s()
        time.sleep(_LOOK_EVERY_S)
        others_wait = _others_want_a_core()
        used_s = cpu_of_others_s() - before_s
        if not others_wait and used_s < _BUSY_SHARE * (time.perf_counter() - look_s):
            break
        used_by_others_s += used_s
    return used_by_others_s


def cpu_of_others_s() -> float:
    """Return the CPU time of all threads but this one."""
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
