"""Samples of a benchmark's time: so many calls in one sample, and what comes before each sample is not timed.

The number of calls is found as asv finds it: it grows until a sample takes long enough and the warm-up is over.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from math import isfinite
from typing import Any

Call = Callable[[], Any]
Timer = Callable[[], float]

SAMPLE_TIME_S = 0.001  # where a benchmark has none; asv takes ten times as long, for few samples
WARM_UP_S = 0.1
_MOST_TRIES = 5
_WALL_TIMERS = (time.perf_counter, time.monotonic, time.time)


class CallFailed(Exception):
    """The benchmark's own function raised."""


class TimedSamples:
    """``before`` runs before each sample and returns what the sample calls."""

    def __init__(
        self,
        before: Callable[[], Call],
        *,
        number: int = 0,
        sample_time_s: float = SAMPLE_TIME_S,
        warm_up_s: float = WARM_UP_S,
        timer: Timer | None = None,
        pause_gc: bool = True,
    ) -> None:
        self.before, self.number = before, number
        self._sample_time_s, self._warm_up_s, self._pause_gc = sample_time_s, warm_up_s, pause_gc
        self._timer = None if timer in _WALL_TIMERS else timer

    def warm_up(self, first: Call) -> None:
        """Find the number of calls in a sample, with what was set up already; given one, only call it for as long."""
        began_s, found = time.perf_counter(), self.number
        number = found or 1
        while True:
            took_s = self._time_ns(first, number) * number / 1e9
            over = time.perf_counter() >= began_s + self._warm_up_s
            if found or took_s >= self._sample_time_s:
                if over:
                    break
                first = self.before() if found else first
            else:
                growth = min(10.0, max(1.1, self._sample_time_s / took_s)) if took_s > 0 else 10.0
                number = max(number + 1, int(growth * number))
        self.number = number

    def sample_ns(self) -> float:
        """Of one call. A sample during which the clock went back is taken again."""
        for _ in range(_MOST_TRIES):
            if isfinite(found_ns := self._time_ns(self.before(), self.number)):
                return found_ns
        raise CallFailed("the clock of this machine goes back again and again")

    def _time_ns(self, call: Call, number: int) -> float:
        if self._timer is not None:
            return _by(self._timer, call, number)
        from fairlap.engine.measurement import CallableRaised
        from fairlap.engine.timed_calls import time_calls

        try:
            found = time_calls(call, samples=1, warmup=0, calls_per_sample=number, pause_gc=self._pause_gc)
        except CallableRaised as error:
            raise CallFailed from error.__cause__ or error
        return float(memoryview(found.quantities["wall_ns"].samples)[0])


def _by(timer: Timer, call: Call, number: int) -> float:
    """By a clock that the benchmark chose, as ``timeit`` does."""
    calls = itertools.repeat(None, number)
    began = timer()
    for _ in calls:
        call()
    return (timer() - began) * 1e9 / number
