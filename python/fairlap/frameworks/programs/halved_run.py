"""Whether how long a program runs follows its work, found by a run that is stopped for half of the time.

A program that has so much to do needs as much CPU time as always, and twice the time. One that repeats its work until
some time has passed ends about when it always does, having done less.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

SHORTEST_S, LONGEST_S = 0.1, 3.0  # of runs that are looked at: each costs one that is longer
_PULSE_S = 0.02
_COMPUTES = 0.5  # CPU time as a share of the usual time; one that waits for a core loses little by being stopped
_LONGER, _LESS = 1.5, 0.8  # times the usual time and CPU time, between those of the two kinds of programs


class Used(NamedTuple):
    wall_s: float
    cpu_s: float


RunHalved = Callable[[float], Used | None]
"""Makes a run that is stopped half of the time for so many seconds; None where it fails or cannot be stopped."""


def times_itself(usual: Used, run: RunHalved) -> bool:
    """Stop a run; where it ended too early, do so again beside a new usual one: the first may have been disturbed."""
    if not _ends_as_always(usual, run):
        return False
    again = run(0.0)
    return again is not None and _ends_as_always(again, run)


def _ends_as_always(usual: Used, run: RunHalved) -> bool:
    if not SHORTEST_S <= usual.wall_s <= LONGEST_S or usual.cpu_s < _COMPUTES * usual.wall_s:
        return False
    found = run(_LONGER * usual.wall_s)
    return found is not None and found.wall_s < _LONGER * usual.wall_s and found.cpu_s < _LESS * usual.cpu_s


def run_halved(words: Sequence[str], folder: str | None, seconds: float) -> Used | None:
    """Run a program without its output, with all of its process group stopped half of the time for so long."""
    began_s = time.perf_counter()
    nowhere = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            words, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd=folder, start_new_session=True
        )
    except OSError:
        return None
    try:  # nothing waits for it before it has ended, so its group exists until then
        while time.perf_counter() - began_s < seconds and not _has_ended(process.pid):
            time.sleep(_PULSE_S)
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(_PULSE_S)
            os.killpg(process.pid, signal.SIGCONT)
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException as error:
        process.kill()  # also ends what is stopped
        process.wait()
        if isinstance(error, OSError):
            return None
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    used = Used(time.perf_counter() - began_s, usage.ru_utime + usage.ru_stime)
    return used if status == 0 else None


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
