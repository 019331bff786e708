"""How many cores the threads of this process used or waited for, by the scheduler's own count (Linux).

Threads that hand work to each other never want more than one core at a time, however busy the machine is; threads
that compute side by side want one each, even where all are bound to the same core.
"""

from __future__ import annotations

import time
from pathlib import Path

_TASKS = Path("/proc/self/task")


class CoreDemandMeter:
    """Counts from the moment it is made. Threads that end before they are counted again are left out."""

    def __init__(self) -> None:
        self._before_ns = _ran_or_waited_ns()
        self._began_ns = time.perf_counter_ns()

    def cores(self) -> float | None:
        """Compute the average so far; None where the kernel does not count."""
        passed_ns = time.perf_counter_ns() - self._began_ns
        after_ns = _ran_or_waited_ns()
        if not after_ns or not self._before_ns or passed_ns <= 0:
            return None
        return sum(ns - self._before_ns.get(task, 0) for task, ns in after_ns.items()) / passed_ns


def _ran_or_waited_ns() -> dict[str, int]:
    times: dict[str, int] = {}
    try:
        tasks = list(_TASKS.iterdir())
    except OSError:
        return {}
    for task in tasks:
        try:
            ran, waited, _slices = (task / "schedstat").read_text().split()
            times[task.name] = int(ran) + int(waited)
        except (OSError, ValueError):
            continue  # it has just ended, or nothing is counted
    return times
