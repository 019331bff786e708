"""What the runs of a program use: CPU time and peak resident memory, as the kernel counts them when a run has ended.

CPU time is that of the program and of the children that it waited for. The peak is that of the largest of these
processes: the kernel adds none up. (What `/usr/bin/time` prints.)

A process that is started shares the memory of its parent until it executes the program, and Linux counts that as its
own peak. So a program that is smaller than the worker is run once more, from a process that is as small as Python can
be, and that reports what it adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from statistics import median_low

_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
_LEAST_ABOVE_BYTES = 256 * 1024  # kernels count pages of several threads in batches
_SMALL = """
import _signal, os, sys

def peak_of(words):
    child = os.fork()
    if not child:
        try:
            _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
            os.execvp(words[0], words)
        except OSError:
            pass
        finally:
            os._exit(127)
    _, status, usage = os.wait4(child, 0)
    return status, usage.ru_maxrss

_, own = peak_of(["no program has this name"])  # looked for like others
status, peak = peak_of(sys.argv[2:])
os.write(int(sys.argv[1]), b"%d %d" % (own, peak))
code = os.waitstatus_to_exitcode(status)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class UseOfRuns:
    """``run_small`` makes one run more with its words put behind those given, and this open end passed on."""

    method = "wait4, of the program and the children that it waited for"

    def __init__(self, run_small: Callable[[Sequence[str], int], None]) -> None:
        self._run_small = run_small
        self._cpu_ns: list[float] = []
        self._peaks: list[int] = []
        self._known_peaks: list[int] = []
        self._small_peak: int | str | None = None

    def wait(self, process: subprocess.Popen[bytes]) -> float:
        """Wait for a run, which nothing has waited for, keep what it used, and return its CPU time in nanoseconds."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._cpu_ns.append((usage.ru_utime + usage.ru_stime) * 1e9)
        self._peaks.append(usage.ru_maxrss * _UNIT_BYTES)
        return self._cpu_ns[-1]

    def newest_ns(self, calls: int) -> Sequence[float]:
        """CPU times of the last so many runs."""
        kept, self._cpu_ns = self._cpu_ns[-calls:], []
        return kept

    def peak_bytes(self, own_bytes: int) -> int | str:
        """Compute the median peak of the runs so far, or say why it is unknown.

        ``own_bytes`` is the most that this process held while the newest of them were started.
        """
        newest, self._peaks = self._peaks, []
        if self._small_peak is None and newest and min(newest) <= own_bytes + _LEAST_ABOVE_BYTES:
            self._small_peak = self._peak_of_small_run()
            self._peaks = []  # its own is that of what started it
        if self._small_peak is not None:
            return self._small_peak
        self._known_peaks += newest
        return median_low(self._known_peaks) if self._known_peaks else "it did not run"

    def _peak_of_small_run(self) -> int | str:
        reads, writes = os.pipe()
        try:
            self._run_small([sys.executable, "-I", "-S", "-c", _SMALL, str(writes)], writes)
            own, peak = (int(each) * _UNIT_BYTES for each in os.read(reads, 100).split())
        finally:
            os.close(reads)
            os.close(writes)
        if peak > own + _LEAST_ABOVE_BYTES:
            return peak
        return f"it is below {own / 1e6:.0f} MB, the size of the smallest process that fairlap can start it from"
