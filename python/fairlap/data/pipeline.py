"""One job for every pipeline alike: shuffled whole batches out of a file for each input.

Pipelines of frameworks: iterators that tell nothing of themselves, so a stopwatch stands around each step.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlap.models.workload import Arrays

NUMBERS = "fairlap.numbers"
"""Beside the inputs in a numbered job: which sample each one is. No input can have this name."""

WAITED = "waited_ns"


@dataclass(frozen=True)
class Job:
    files: Mapping[str, str]  # .npy, by the inputs' names, all with equally many samples
    samples: int
    batch: int
    seed: int
    epochs: int | None = None  # None: without end
    numbered: bool = False

    @property
    def batches_in_epoch(self) -> int:
        """What does not fill a batch is left out of an epoch, since a model takes one size."""
        return self.samples // self.batch


class Pipeline(ABC):
    """Batches one after the other; one is held at a time."""

    told: str
    """What it is and how it is set, for the row."""

    @abstractmethod
    def take(self) -> Mapping[str, Any] | None:
        """Waits for the next batch, as the contestant takes it, by the inputs' names; None at the end."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The batch that is held, seen through NumPy."""

    @abstractmethod
    def release(self) -> None:
        """The work on the batch that is held is done."""

    @abstractmethod
    def waits_ns(self) -> dict[str, int]:
        """How long was waited in all so far, and for what where the pipeline can tell."""

    @abstractmethod
    def close(self) -> None:
        """Ends whatever it started."""


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
