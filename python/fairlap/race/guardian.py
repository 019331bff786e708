"""A worker must not outlive its parent, nor leave children behind, whatever either of them is doing.

The kernel kills the worker when the thread that started it dies (Linux). Beside it stands a guardian, a small
process that sleeps until the parent's end of the request pipe is closed, and then kills the whole session: the
worker itself may be stuck in native code that never gives the interpreter back.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Sequence

from fairlap.race.sessions import TOKEN, kill_session

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, read_fd: int) -> None:
    """``parent`` is who started us; it may be gone before we could ask to be told."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    _start_guardian(read_fd)


def _start_guardian(read_fd: int) -> None:
    """Forked twice, so that it is nobody's child whom a framework may wait for or count."""
    session = os.getsid(0)
    if session != os.getpid():
        return  # started by hand: the session is the user's shell
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    try:
        if os.fork() == 0:
            _guard(session, read_fd)
    finally:
        os._exit(0)


def _guard(session: int, read_fd: int) -> None:
    os.setpgid(0, 0)  # it must survive its own first blow, which strikes the session's first group
    _keep_only([read_fd])
    poll = select.poll()
    poll.register(read_fd, 0)  # only the hang-up, which is always told
    with contextlib.suppress(InterruptedError):
        poll.poll()
    kill_session(session, os.environ.get(TOKEN, ""))


def _keep_only(kept: Sequence[int]) -> None:
    """Above all not the write end: as long as it is open here, the parent cannot see the worker's end."""
    low = 0
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
