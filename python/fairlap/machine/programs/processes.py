"""The processes of this machine, as Linux lists them under /proc; empty elsewhere."""

from __future__ import annotations

import os
from typing import NamedTuple

_PROC = "/proc"
DEAD = ("Z", "X")


class ProcessStat(NamedTuple):
    state: str
    parent: int
    session: int
    cpu_s: float  # to the kernel's tick of about 10 ms
    ended_children_cpu_s: float = 0.0  # of those that it has waited for, and of theirs


def process_ids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208  (twice as fast)
    except OSError:
        return []


def process_stat(pid: int) -> ProcessStat | None:
    """None for a process that has ended."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123
            # The name in parentheses may itself contain spaces and parentheses.
            state, parent, _group, session, *rest = file.read().rpartition(b")")[2].split()
        own, of_children = (sum(map(int, rest[place : place + 2])) / os.sysconf("SC_CLK_TCK") for place in (7, 9))
        return ProcessStat(state.decode(), int(parent), int(session), own, of_children)
    except (OSError, ValueError, IndexError):
        return None


def lives(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is not None and stat.state not in DEAD


def process_name(pid: int) -> str:
    try:
        with open(f"{_PROC}/{pid}/comm", "rb") as file:  # noqa: PTH123
            return file.read().decode(errors="replace").strip()
    except OSError:
        return "a process"


def thread_states(pid: int) -> list[str]:
    """Of each thread, the letter that the kernel has for its state; empty for a process that has ended."""
    tasks = f"{_PROC}/{pid}/task"
    states = []
    try:
        for task in os.listdir(tasks):  # noqa: PTH208  (twice as fast)
            try:
                file = os.open(f"{tasks}/{task}/stat", os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                states.append(os.read(file, 512).rpartition(b") ")[2][:1].decode())
            except ProcessLookupError:
                continue
            finally:
                os.close(file)
    except OSError:
        pass
    return states


def ran_s(pid: int) -> dict[int, float] | None:
    """Read the CPU time of each thread that a process has; None where that is not counted."""
    return _of_threads_s(pid, 0)


def waited_s(pid: int) -> dict[int, float] | None:
    """How long each thread of a process has been ready to run and had no core; None where that is not counted."""
    return _of_threads_s(pid, 1)


def _of_threads_s(pid: int, place: int) -> dict[int, float] | None:
    tasks = f"{_PROC}/{pid}/task"
    found: dict[int, float] = {}
    try:
        for task in os.listdir(tasks):  # noqa: PTH208  (twice as fast)
            try:
                with open(f"{tasks}/{task}/schedstat", "rb") as file:  # noqa: PTH123
                    found[int(task)] = int(file.read().split()[place]) / 1e9
            except FileNotFoundError:
                if os.path.isdir(f"{tasks}/{task}"):  # noqa: PTH112
                    return None  # the kernel does not count; otherwise the thread has ended
    except (OSError, ValueError, IndexError):
        return None
    return found


def end_descriptor(pid: int) -> int | None:
    """Open a descriptor that becomes readable when the process ends, where the kernel has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
