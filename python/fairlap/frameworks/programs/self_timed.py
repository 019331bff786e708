"""Recognising a harness that times the program's work itself: by its report, or by a run that is stopped.

Such a harness repeats the work until it has run for some time, so how long the program runs says little about the work.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections.abc import Mapping
from typing import IO

from fairlap.engine.measurement import Notice
from fairlap.request.commands import ReportFormat

CODE = "W_TIMES_ITSELF"
MOST_BYTES = 256 * 1024  # of the output that is looked at
_POLL_S = 0.05

_REPORTS = {
    "Google Benchmark": (
        rb'^Benchmark +Time +CPU +Iterations|^name,iterations,real_time,cpu_time,|"run_type": "(iteration|aggregate)"|'
        rb'"real_time": [^,\n]+,\s+"cpu_time": '  # before version 1.4.1
    ),
    "pyperf": rb'^(\S+: )?Mean \+- std dev: |"perf_version":',
    "hyperfine": "^ +Time \\((mean ± σ|abs ≡)\\):".encode(),
    "criterion": rb"\stime: +\[\d[\d.]* \S+ \d[\d.]* \S+ \d[\d.]* \S+\]",
    "timeit": rb"^\d+ loops?, best of \d+: ",
    "go test": rb"^Benchmark\S+\s+\d+\s+\d[\d.]* ns/op",
}
_FORMATS: Mapping[str, ReportFormat] = {
    "Google Benchmark": "google-benchmark",
    "pyperf": "pyperf",
    "hyperfine": "hyperfine",
    "criterion": "criterion",
}
_PATTERNS = {tool: re.compile(pattern, re.MULTILINE) for tool, pattern in _REPORTS.items()}


def harness_in(printed: bytes) -> str:
    """Recognize the harness whose report this is; empty if it is none that is known."""
    return next((tool for tool, pattern in _PATTERNS.items() if pattern.search(printed[:MOST_BYTES])), "")


def notices_about(printed: bytes) -> tuple[Notice, ...]:
    harness = harness_in(printed)
    if not harness:
        return ()
    how = (
        f"race by its report with --reported {_FORMATS[harness]}"
        if harness in _FORMATS
        else "race by a time that it prints with --reported number, or fix the number of repetitions"
    )
    text = (
        f"it prints a report of {harness}, which chooses how often it repeats the work; how long it runs says little "
        f"about the work: {how}"
    )
    return (Notice(CODE, text),)


NOTICE_OF_A_RUN = Notice(
    CODE,
    "a run that was stopped half of the time ended about when it always does, having computed less: it repeats its "
    "work until some time has passed, so how long it runs says little about the work; race by a time that it prints "
    "with --reported number, or fix the number of repetitions",
)


class FirstOutput:
    """The beginning of what one run of a program prints, through a pipe that keeps no more than that."""

    def __init__(self) -> None:
        # The reading end stays open: a process that the program leaves behind may still print.
        self._read_end, write_end = os.pipe()
        self._write_end = os.fdopen(write_end, "wb", buffering=0)
        os.set_blocking(self._read_end, False)
        self.printed = b""

    @property
    def goes_to(self) -> IO[bytes]:
        """What the program has for its standard output."""
        return self._write_end

    def read_until_ended(self, process: subprocess.Popen[bytes]) -> None:
        self._write_end.close()
        while process.poll() is None:
            select.select([self._read_end], [], [], _POLL_S)
            if self._read_what_is_there():
                process.wait()
        self._read_what_is_there()

    def _read_what_is_there(self) -> bool:
        """Read the available output, and return whether it has ended."""
        while True:
            try:
                chunk = os.read(self._read_end, MOST_BYTES)
            except BlockingIOError:
                return False
            if not chunk:
                return True
            self.printed += chunk[: MOST_BYTES - len(self.printed)]

    def __del__(self) -> None:
        os.close(self._read_end)
