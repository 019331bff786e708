"""The parts of a worker's work, timed and told as they begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fairlap.worker.protocol import Begin, Phase, Reply

OURS = "fairlap"
"""The phase in which fairlap loads what it needs itself: its engine, its files."""

NUMPY = "numpy"
"""Told apart, since most frameworks would load it anyway."""


class Phases:
    """``now`` is the part that a failure is charged to. An instance is what adapters get as ``phase``."""

    def __init__(self, tell: Callable[[Reply], None]) -> None:
        self.now = "start"
        self._tell = tell

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        before = self.begin(name)
        began_ns = time.perf_counter_ns()
        yield  # not in try/finally: after an exception the phase stays the one to blame
        self.end(name, (time.perf_counter_ns() - began_ns) / 1e9, before)

    def begin(self, name: str) -> str:
        before, self.now = self.now, name
        self._tell(Begin(name))
        return before

    def end(self, name: str, seconds: float, before: str) -> None:
        self._tell(Phase(name, seconds))
        self.now = before
