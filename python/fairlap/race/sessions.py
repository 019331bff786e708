"""The processes that belong to a worker: found, and ended for certain.

A worker leads a session of its own. A descendant may leave it (a daemon does), so every worker also carries a
token in its environment, which descendants inherit. Linux tells both under /proc; elsewhere only the worker's
process group is reached.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

TOKEN = "FAIRLAP_WORKER"
_PROC = "/proc"
_DEAD = ("Z", "X")


def living_processes(session: int, token: str) -> list[int]:
    """All but zombies and ourselves, as far as this user may look."""
    mark = f"{TOKEN}={token}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and _belongs(pid, session, mark)]


def kill_session(session: int, token: str, within_s: float = 10.0) -> tuple[int, ...]:
    """SIGKILL to everyone until nobody is left; those that the kernel does not let die in time are returned."""
    deadline_s = time.monotonic() + within_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    pause_s = 0.001
    while found := living_processes(session, token):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline_s:
            return tuple(found)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)
        for pid in found:  # ours to reap when we are the first process of a container
            with contextlib.suppress(ChildProcessError):
                if pid != session:
                    os.waitpid(pid, os.WNOHANG)
    return ()


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208  (twice as fast)
    except OSError:
        return []


def _belongs(pid: int, session: int, mark: bytes) -> bool:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123
            # The name in parentheses may itself hold spaces and parentheses.
            state, _parent, _group, of_session, *_ = file.read().rpartition(b")")[2].split()
        if state.decode() in _DEAD:
            return False
        if int(of_session) == session:
            return True
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read().split(b"\0")
    except (OSError, ValueError):
        return False
