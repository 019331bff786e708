"""A process that must not outlive fairlap, nor leave anything behind, whatever either of them is doing.

:func:`guarded` forks. What fairlap started becomes the guardian: it sleeps, and the work is done in its child. It is a
subreaper, so nothing that the child starts gets away from below it. When the child ends, or the pipe to fairlap closes
because fairlap was killed, it ends everything that is left and then itself, as the child did. The child may be stuck in
native code that never releases the interpreter; it does not matter.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Sequence

from fairlap.machine.programs.process_tree import ProcessTree, become_subreaper

TOKEN = "FAIRLAP_WORKER"
"""A variable of a worker, which its descendants inherit."""

CLIENT = "FAIRLAP_CONTAINER_CLIENT"
"""A variable of a worker that starts containers: the words of their client before its own command."""

_PR_SET_PDEATHSIG = 1
_OF_SIGNALS = 128  # the status that a shell and docker have for the end by a signal
_END_WITHIN_S = 1.5  # what cannot be killed waits in the kernel, and fairlap waits for the status


def guarded(pipe: int, at_end: Callable[[], None] = lambda: None) -> bool:
    """Return in the child only. ``pipe`` is an end of a pipe whose other end nothing but fairlap holds.

    The guardian calls ``at_end`` when all that is below it has ended.

    False where there is no guardian, because a shell started this process, and where the kernel refuses to hand orphans
    to it. The caller has one thread.
    """
    if os.getsid(0) != os.getpid():
        end_with_parent(signal.SIGKILL)
        return False
    holds_orphans = become_subreaper()
    end_with_parent(signal.SIGTERM)  # which is looked for below; the pipe may have been inherited by another process
    woken, wakes = os.pipe()
    for fd in (woken, wakes):
        os.set_blocking(fd, False)
    before = {which: signal.signal(which, _do_nothing) for which in (signal.SIGCHLD, signal.SIGTERM)}
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    guardian = os.getpid()
    child = os.fork()
    if child:
        _guard(child, pipe, woken, wakes, at_end)
    signal.set_wakeup_fd(-1)
    for which, handler in before.items():
        signal.signal(which, handler)
    os.close(woken)
    os.close(wakes)
    os.setpgid(0, 0)  # or what a framework sends to its own group would end the guardian
    end_with_parent(signal.SIGKILL)
    if os.getppid() != guardian:
        os._exit(1)
    return holds_orphans


def end_with_parent(by: signal.Signals) -> None:
    """Ask the kernel for the signal when the thread that started this process ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0)


def keep_only(kept: Sequence[int]) -> None:
    """Close all other descriptors.

    While the write end of a pipe is open here, its reader cannot see that all others ended.
    """
    low = 0
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def _guard(child: int, pipe: int, woken: int, wakes: int, at_end: Callable[[], None]) -> None:
    """Never returns, and raises nothing."""
    status = 1
    try:
        keep_only([pipe, woken, wakes])
        found = _status_of(child, pipe, woken)
        ProcessTree(os.getpid(), child).kill(_END_WITHIN_S)
        _reaped()  # the first process of a container may not do it
        at_end()
        if found is not None:
            status = os.waitstatus_to_exitcode(found)
        if status < 0:
            _die_of(-status)
    finally:
        os._exit(status if status >= 0 else 1)


def _status_of(child: int, pipe: int, woken: int) -> int | None:
    """Of the child when it has ended; None when it has to be ended."""
    poll = select.poll()
    poll.register(pipe, 0)  # only the hang-up, which is always reported
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if pipe in ready:
            return None
        if signal.SIGTERM in os.read(woken, 4096):
            return None
        ended = _reaped()
        if child in ended:
            return ended[child]


def _reaped() -> dict[int, int]:
    """Reap the children that have ended, and return the status of each."""
    statuses = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = ended[1]
    return statuses


def _die_of(number: int) -> None:
    if os.getpid() == 1:  # the first process of a container, which no signal of its own ends
        os._exit(_OF_SIGNALS + number)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child's is enough
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)


def _do_nothing(number: int, frame: object) -> None:
    """Do nothing: a signal has to have a handler to be written to the wake-up descriptor."""
