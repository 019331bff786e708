"""The phases of a worker, timed and reported as they begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fairlap.worker.protocol import Begin, Phase, Reply

OURS = "fairlap"
"""The phase in which fairlap loads its own modules and files."""

NUMPY = "numpy"
"""A separate phase, since most frameworks would load it anyway."""


class Phases:
    """``now`` is the phase that a failure is attributed to. Adapters receive an instance as ``phase``."""

    def __init__(self, send: Callable[[Reply], None]) -> None:
        self.now = "start"
        self._send = send

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        before = self.begin(name)
        began_ns = time.perf_counter_ns()
        yield  # no try/finally: after an exception the failure belongs to this phase
        self.end(name, (time.perf_counter_ns() - began_ns) / 1e9, before)

    def begin(self, name: str) -> str:
        before, self.now = self.now, name
        self._send(Begin(name))
        return before

    def end(self, name: str, seconds: float, before: str) -> None:
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
