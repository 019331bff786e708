"""What a contestant left running after it had killed its guardian: the kernel hands it to the command that raced it.

It may have a session and an environment of its own, so nothing tells whose it was. In a process of fairlap alone every
child with another session was either started by :func:`in_own_session`, or is such an orphan.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import weakref
from typing import Any

from fairlap.machine.programs.process_tree import ProcessTree, become_subreaper, children
from fairlap.machine.programs.processes import process_stat

_ENDED_WITHIN_S = 5.0

_started: weakref.WeakKeyDictionary[subprocess.Popen[bytes], bool] = weakref.WeakKeyDictionary()
_while_starting = threading.Lock()
_adopts = False


def adopt_orphans() -> None:
    """For a process of fairlap alone, where nobody else starts anything."""
    global _adopts
    _adopts = become_subreaper()


def in_own_session(command: list[str], *, guarded: bool, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process, and remember whether it is guarded.

    One that is not may have daemons, which are handed to this process while it runs.
    """
    with _while_starting:  # or it would be taken for an orphan before it is known
        process = subprocess.Popen(command, start_new_session=True, **options)
        _started[process] = guarded
    return process


def end_orphans() -> None:
    """When the last process that may have daemons has ended."""
    if not _adopts:
        return
    with _while_starting:
        living = {process.pid: guarded for process, guarded in _started.items() if process.returncode is None}
        if not all(living.values()):
            return
        for pid in _handed_over({os.getsid(0), *living}):
            ProcessTree(pid).kill(_ENDED_WITHIN_S)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _handed_over(known_sessions: set[int]) -> list[int]:
    stats = {pid: process_stat(pid) for pid in children(os.getpid())}
    return [pid for pid, stat in stats.items() if stat is not None and stat.session not in known_sessions]
