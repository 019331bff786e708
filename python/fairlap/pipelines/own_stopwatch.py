"""Pipelines of frameworks: iterators that tell nothing of themselves, so a stopwatch stands around each step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from fairlap.pipelines.pipeline import WAITED, Pipeline


class TimedIterator(Pipeline):
    """What the iterator gives is what the contestant takes, and is let go of when the next one comes."""

    def __init__(self, batches: Iterator[Mapping[str, Any]]) -> None:
        self._batches = batches
        self._waited_ns = 0
        self.held: Mapping[str, Any] = {}

    def take(self) -> Mapping[str, Any] | None:
        began_ns = time.perf_counter_ns()
        taken = next(self._batches, None)
        self._waited_ns += time.perf_counter_ns() - began_ns
        self.held = taken or {}
        return taken

    def release(self) -> None:
        """The framework counts who holds its tensors."""

    def waits_ns(self) -> dict[str, int]:
        return {WAITED: self._waited_ns}
