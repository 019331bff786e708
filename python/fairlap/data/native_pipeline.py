"""fairlap's feeder as a pipeline: one feeder per input, all with the same seed, so that their samples match."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.data.pipeline import NUMBERS, WAITED, Job, Pipeline
from fairlap.engine import Batch, Feeder
from fairlap.models.arrays import Arrays

SLOTS = 4
_CAUSES = ("source_ns", "staging_ns", "no_slot_ns")


class NativePipeline(Pipeline):
    description = "fairlap"

    def __init__(self, job: Job, hand_over: Callable[[Batch], Any]) -> None:
        sources: dict[str, Any] = dict(job.files)
        if job.numbered:
            sources[NUMBERS] = np.arange(job.samples, dtype=np.int64)
        self._hand_over = hand_over
        self._held: dict[str, Batch] = {}
        self._feeders: dict[str, Feeder] = {}
        try:
            for name, source in sources.items():
                self._feeders[name] = Feeder(
                    source, batch=job.batch, slots=SLOTS, seed=job.seed, epochs=job.epochs, last="drop"
                )
        except BaseException:
            self.close()
            raise
        self._each = tuple(self._feeders.items())

    def take(self) -> Mapping[str, Any] | None:
        held, hand_over = self._held, self._hand_over
        taken = {}
        for name, feeder in self._each:
            batch = feeder.next()
            if batch is None:
                return None
            held[name] = batch
            taken[name] = hand_over(batch)
        return taken

    def arrays(self) -> Arrays:
        return {name: np.from_dlpack(batch) for name, batch in self._held.items()}

    def release(self) -> None:
        for batch in self._held.values():
            batch.release()

    def waits_ns(self) -> dict[str, int]:
        """Summed over the inputs, which are taken one after the other."""
        stalls_of_feeders = [feeder.stalls for feeder in self._feeders.values()]
        causes = {cause: sum(getattr(stalls, cause) for stalls in stalls_of_feeders) for cause in _CAUSES}
        return {WAITED: sum(causes.values()), **causes}

    def close(self) -> None:
        self.release()
        for feeder in self._feeders.values():
            feeder.close()
