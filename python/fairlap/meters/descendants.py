"""The CPU time of the processes that a worker has started, to the kernel's tick of about 10 ms (Linux)."""

from __future__ import annotations

import os
from typing import NamedTuple

_PROC = "/proc"


class _Stat(NamedTuple):
    parent: int
    session: int
    cpu_s: float


def cpu_of_descendants_s(worker: int) -> dict[int, float]:
    """By process: those of the worker's session, and its descendants outside of it. Empty where there is no /proc."""
    stats = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
    session = stats[worker].session if worker in stats else worker

    def descends(pid: int) -> bool:
        seen: set[int] = set()
        while pid in stats and pid not in seen:
            seen.add(pid)
            pid = stats[pid].parent
            if pid == worker:
                return True
        return False

    others = (pid for pid in stats if pid != worker)
    return {pid: stats[pid].cpu_s for pid in others if stats[pid].session == session or descends(pid)}


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208  (twice as fast)
    except OSError:
        return []


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123
            # The name in parentheses may itself contain spaces and parentheses.
            fields = file.read().rpartition(b")")[2].split()
        return _Stat(int(fields[1]), int(fields[3]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return None
