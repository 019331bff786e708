"""What others took from this process while callables were compared in it, judged by the rule for races.

It is read once, around all blocks: in a block the callables have single samples in turn, so what hits one hits all, and
reading more often would cost as much as a block of short calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fairlap.meters.disturbances import MEASURED, OTHERS, STEAL, TAKEN, THROTTLED, StepsMeter
from fairlap.meters.stolen_time import SEVERAL_THREADS, STOPPED, StolenTime, waited_for_others

_WHERE = "this process"
_SEVERAL = 2  # threads, of callables that compute on more than the one that calls


class StolenMeanwhile:
    def __init__(self) -> None:
        self._meter = StepsMeter(os.getpid())
        self._of_all_s = self._of_one_s = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        all_s, one_s = time.process_time(), time.thread_time()
        try:
            with self._meter.turn():
                yield
        finally:
            self._of_all_s += time.process_time() - all_s
            self._of_one_s += time.thread_time() - one_s

    @property
    def stolen(self) -> StolenTime:
        """Nothing where the CPU time of others is not known: of one process, waiting may be for its own threads."""
        read = self._meter.readings()
        if OTHERS not in read:
            return StolenTime()
        waited = max(waited_for_others(read), read.get(TAKEN, 0.0))
        is_throttled = read.get(THROTTLED, 0.0) > STOPPED * read[MEASURED]
        several = TAKEN in read or self._of_all_s > SEVERAL_THREADS * self._of_one_s
        return StolenTime({_WHERE: waited}, waited, read.get(STEAL, 0.0), int(is_throttled), 1, several)

    def why_not_claimable(self) -> tuple[str, str]:
        """Explain with a code why ratios would be those of the load of others; empty where they would not."""
        return self.stolen.refusal(threads=_SEVERAL, whose="callables")

    @property
    def why_not_claimed(self) -> str:
        """Both in one text."""
        why, code = self.why_not_claimable()
        return f"{why} [{code}]" if code else ""
