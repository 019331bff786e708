"""What belongs to a worker or to a rank where the tree of processes does not show it: its session, and its token.

A worker leads its own session, and has a token in its environment, which its descendants inherit. Linux shows both
under /proc; elsewhere only the process group is reached. A worker in another language may have no guardian
(:mod:`fairlap.machine.programs.guardian`), and then its daemons are found by these.

The ranks of a contestant may run on other hosts, so they have a token of their own, and their guardians watch the
connection to what conducts them.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from fairlap.machine.programs.guardian import TOKEN, keep_only
from fairlap.machine.programs.processes import DEAD, end_descriptor, lives, process_ids, process_stat

RANKS_TOKEN = "FAIRLAP_RANKS"  # of one contestant's ranks and of what started them; the conductor does not have it
_PROC = "/proc"


def living_processes(session: int, token: str, variable: str = TOKEN) -> list[int]:
    """All but zombies and this process, as far as this user may inspect them."""
    mark = f"{variable}={token}".encode()
    return [pid for pid in process_ids() if pid != os.getpid() and _belongs(pid, session, mark)]


def kill_session(session: int, token: str, within_s: float = 10.0, variable: str = TOKEN) -> tuple[int, ...]:
    """Send SIGKILL until no process is left. Return those that the kernel did not end in time."""
    deadline_s = time.monotonic() + within_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    pause_s = 0.001
    while found := living_processes(session, token, variable):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline_s:
            return tuple(found)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)
        for pid in found:  # adopted by this process if it is the first of a container
            with contextlib.suppress(ChildProcessError):
                if pid != session:
                    os.waitpid(pid, os.WNOHANG)
    return ()


def _belongs(pid: int, session: int, mark: bytes) -> bool:
    stat = process_stat(pid)
    if stat is None or stat.state in DEAD:
        return False
    if stat.session == session:
        return True
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def die_with_connection(connection: int) -> None:
    """For a rank. Its launcher may have started it in a separate session."""
    rank = os.getpid()
    with contextlib.suppress(OSError):  # it leads its process group already
        os.setsid()
    rank_ended = end_descriptor(rank)
    _fork_guardian(lambda: _guard_rank(rank, connection, rank_ended))
    if rank_ended is not None:
        os.close(rank_ended)


def _fork_guardian(guard: Callable[[], None]) -> None:
    """Fork twice, so that the guardian is not a child that a framework could wait for or count.

    When this returns it has left the worker's process group, or it could be frozen with it and outlive it.
    """
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    try:
        guardian = os.fork()
        if guardian == 0:
            os.setpgid(0, 0)  # so that it survives freezing and killing the first process group of the session
            guard()
        with contextlib.suppress(OSError):  # it was quicker itself, and may have ended
            os.setpgid(guardian, guardian)
    finally:
        os._exit(0)


_LOOK_AT_RANK_EVERY_MS = 200  # where the system has no pidfd


def _guard_rank(rank: int, connection: int, rank_ended: int | None) -> None:
    """End all ranks of this host when the connection closes.

    A rank that ended leaves only its own session: while the connection is open here, the conductor cannot see that the
    rank has lost it.
    """
    keep_only([connection] if rank_ended is None else [connection, rank_ended])
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    if rank_ended is not None:
        poll.register(rank_ended, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll(_LOOK_AT_RANK_EVERY_MS if rank_ended is None else None)]
        if connection in ready:
            break
        if ready or (rank_ended is None and not lives(rank)):
            os.close(connection)
            kill_session(rank, "nothing has this token")
            return
    kill_session(rank, os.environ.get(RANKS_TOKEN, ""), variable=RANKS_TOKEN)
