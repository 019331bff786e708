"""fairlap's feeder as a pipeline: one feeder per input, all with the same seed, so that their samples match.

On a GPU batches are copied out of pinned memory ahead of the call, on a stream of the feeder's own. Only the numbers of
samples stay in host memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.data.pipeline import NUMBERS, WAITED, Job, Pipeline
from fairlap.data.timed_copies import TimedCopies
from fairlap.engine import Batch, Feeder
from fairlap.frameworks.contract import Fed
from fairlap.models.arrays import Arrays

SLOTS = 4
_MOST_THREADS = 8
_CAUSES = ("source_ns", "staging_ns", "no_slot_ns")


def _threads_beside_a_gpu() -> int:
    """While a GPU works its host does little else. On a CPU a second thread would take a core from the contestant."""
    return max(1, min(_MOST_THREADS, len(os.sched_getaffinity(0)) - 1))


class NativePipeline(Pipeline):
    description = "fairlap"

    def __init__(self, job: Job, fed: Fed) -> None:
        sources: dict[str, Any] = dict(job.files)
        if job.numbered:
            sources[NUMBERS] = np.arange(job.samples, dtype=np.int64)
        self._fed = fed
        self._held: dict[str, Batch] = {}
        self._handed_over: dict[str, Any] = {}
        self._feeders: dict[str, Feeder] = {}
        try:
            for name, source in sources.items():
                self._feeders[name] = Feeder(
                    source,
                    batch=job.batch,
                    slots=SLOTS,
                    seed=job.seed,
                    epochs=job.epochs,
                    last="drop",
                    threads=1 if fed.device == "cpu" else _threads_beside_a_gpu(),
                    device="cpu" if name == NUMBERS else fed.device,
                )
        except BaseException:
            self.close()
            raise
        self._each = tuple(self._feeders.items())

    def take(self) -> Mapping[str, Any] | None:
        held, hand_over = self._held, self._fed.hand_over
        taken = {}
        for name, feeder in self._each:
            batch = feeder.next()
            if batch is None:
                return None
            held[name] = batch
            taken[name] = np.from_dlpack(batch) if name == NUMBERS else hand_over(batch)
        self._handed_over = taken
        return taken

    def arrays(self) -> Arrays:
        if self._fed.device == "cpu":
            return {name: np.from_dlpack(batch) for name, batch in self._held.items()}
        read = self._fed.read
        return {name: each if name == NUMBERS else read(each) for name, each in self._handed_over.items()}

    def release(self) -> None:
        self._handed_over = {}
        for batch in self._held.values():
            batch.release()

    def waits_ns(self) -> dict[str, int]:
        """Sum the waiting times over the inputs, which are taken one after the other.

        A batch is staged when it is where the contestant takes it, so on a GPU the way there is part of staging.
        """
        stalls_of_feeders = [feeder.stalls for feeder in self._feeders.values()]
        causes = {cause: sum(getattr(stalls, cause) for stalls in stalls_of_feeders) for cause in _CAUSES}
        causes["staging_ns"] += sum(stalls.link_ns or 0 for stalls in stalls_of_feeders)
        return {WAITED: sum(causes.values()), **causes}

    def time_copies(self, on: bool) -> None:
        for feeder in self._feeders.values():
            feeder.time_copies(on)

    def copies(self) -> TimedCopies:
        """Add up the copies of all inputs, each compared with the work on the same batches."""
        times = [each for feeder in self._feeders.values() if (each := feeder.copy_times) is not None]
        if not times:
            return super().copies()
        found = TimedCopies(
            sum(each.copies for each in times),
            sum(each.copied_ns for each in times),
            sum(each.hidden_ns for each in times),
        )
        if found.copies:
            return found
        if any(each.without_stream for each in times):
            return TimedCopies(absent="the framework does not name one stream for all of its work on a batch")
        lost = " whose events did not fail" if any(each.lost for each in times) else ""
        return TimedCopies(absent=f"too few batches were copied{lost}")

    def close(self) -> None:
        self.release()
        for feeder in self._feeders.values():
            feeder.close()
