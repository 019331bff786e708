"""The phases of a worker, timed and reported as they begin and end.

Under a profiler that shows NVTX ranges, such as Nsight Systems, each phase is one, if the package nvtx is installed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fairlap.scenarios.asking import Reply
from fairlap.worker.protocol import Begin, Phase

OURS = "fairlap"
"""The phase in which fairlap loads its own modules and files."""

_PROFILER_OF_RANGES = "NVTX_INJECTION64_PATH"  # which such a profiler sets for the programs that it starts

NUMPY = "numpy"
"""A separate phase, since most frameworks would load it anyway."""


class Phases:
    """``now`` is the phase that a failure is attributed to. Adapters receive an instance as ``phase``."""

    def __init__(self, send: Callable[[Reply], None]) -> None:
        self.now = "start"
        self._send = send
        self._ranges = _profiler_ranges()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        before = self.begin(name)
        began_ns = time.perf_counter_ns()
        yield  # no try/finally: after an exception the failure belongs to this phase
        self.end(name, (time.perf_counter_ns() - began_ns) / 1e9, before)

    def begin(self, name: str) -> str:
        before, self.now = self.now, name
        self._send(Begin(name))
        if self._ranges is not None:
            self._ranges.push_range(f"fairlap: {name}")
        return before

    def end(self, name: str, seconds: float, before: str) -> None:
        if self._ranges is not None:
            self._ranges.pop_range()
        self._send(Phase(name, seconds))
        self.now = before

    @contextmanager
    def unreported(self) -> Iterator[None]:
        """For a contestant that is built once more: its phases must not count as the first one's."""
        send, self._send = self._send, lambda _reply: None
        try:
            yield
        finally:
            self._send = send

    def relay(self, message: Begin | Phase) -> None:
        """Of a process that this one started and waits for."""
        if isinstance(message, Begin):
            self.now = message.phase
        self._send(message)


def _profiler_ranges() -> Any:
    """Import nvtx under a profiler that shows its ranges; None elsewhere, where each would cost time for nothing."""
    if not os.environ.get(_PROFILER_OF_RANGES):
        return None
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx
