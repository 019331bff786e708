"""The CPU time of the processes that a worker has started, to the kernel's tick of about 10 ms (Linux)."""

from __future__ import annotations

from fairlap.machine.processes import process_ids, process_stat


def cpu_of_descendants_s(worker: int) -> dict[int, float]:
    """By process: those of the worker's session, and its descendants outside of it. Empty where there is no /proc."""
    stats = {pid: stat for pid in process_ids() if (stat := process_stat(pid)) is not None}
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
