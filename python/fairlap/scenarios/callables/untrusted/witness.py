"""Whether another program continued the processes of fairlap, as one does that pauses and resumes all of a machine.

A contestant that was continued is to blame only if nothing else was. So one process of fairlap does nothing but stop
itself whenever it is continued, which its parent sees.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

_PROGRAM = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
while True:
    os.kill(os.getpid(), signal.SIGSTOP)
"""
_GRACE_S = 0.5  # for the signal to reach every process
_PAUSE_S = 0.01


class Witness:
    """``times`` counts what it saw, at least once each time."""

    def __init__(self) -> None:
        self.times = 0
        self._process = subprocess.Popen([sys.executable, "-I", "-S", "-c", _PROGRAM], start_new_session=True)
        self.pid = self._process.pid
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._look()
        self.times = 0

    def has_seen_more(self, times: int) -> bool:
        """Whether it was continued more often than so many times, which may take a moment to be seen."""
        until_s = time.perf_counter() + _GRACE_S
        while not self._look() and self.times <= times and time.perf_counter() < until_s:
            time.sleep(_PAUSE_S)
        return self.times > times

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _look(self) -> bool:
        found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
        self.times += found is not None
        return found is not None
