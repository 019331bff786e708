"""The time of checks, of which those that are optional may take a share of the comparison's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_SHARE = 0.08  # the rest of a tenth is for the checks that are not optional
_LONGEST_WAIT = 3.0  # times as long by the clock as by the time of the processor


class Spending:
    """``spent_s`` is the time of checks, ``whole_s`` that of all that was done for the callables, checks included."""

    def __init__(self) -> None:
        self.spent_s = self.whole_s = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self.spent_s += time.perf_counter() - began_s

    @property
    def left_s(self) -> float:
        """What further checks may take now; below 0 where those that are not optional took more."""
        return _SHARE * self.whole_s - self.spent_s

    def affords(self, seconds: float) -> bool:
        return seconds <= self.left_s


class Window:
    """A time of the processor, since on a busy machine one of the clock would leave too few calls."""

    def __init__(self, seconds: float) -> None:
        self._until_s = time.perf_counter() + _LONGEST_WAIT * seconds
        self._until_cpu_s = time.thread_time() + seconds

    @property
    def is_over(self) -> bool:
        return time.thread_time() > self._until_cpu_s or time.perf_counter() > self._until_s
