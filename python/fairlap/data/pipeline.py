"""The interface of input pipelines. Every pipeline does the same job: shuffled full batches from one file per input."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlap.data.timed_copies import TimedCopies
from fairlap.models.arrays import Arrays

NUMBERS = "fairlap.numbers"
"""In a numbered job, an extra input with the number of each sample. No real input can have this name."""

WAITED = "waited_ns"


@dataclass(frozen=True)
class Job:
    files: Mapping[str, str]  # .npy, by the inputs' names, all with the same number of samples
    samples: int
    batch: int
    seed: int
    epochs: int | None = None  # None: endless
    numbered: bool = False


class Pipeline(ABC):
    """Batches one after the other. One is held at a time."""

    description: str
    """Its name and settings, for the row."""

    @abstractmethod
    def take(self) -> Mapping[str, Any] | None:
        """Wait for the next batch and return it by the inputs' names; None at the end."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return the held batch in NumPy: views of it, or on a GPU copies of what is there now."""

    @abstractmethod
    def release(self) -> None:
        """Report that the work on the held batch is done."""

    @abstractmethod
    def waits_ns(self) -> dict[str, int]:
        """Return the total waiting time so far, and its causes where the pipeline knows them."""

    def time_copies(self, on: bool) -> None:  # noqa: B027  (most make none)
        """Begin or end to time copies to a GPU; the events slow each call down by some microseconds."""

    def copies(self) -> TimedCopies:
        """Return what was timed of them so far, or why nothing was."""
        return TimedCopies(absent="batches stay in host memory")

    @abstractmethod
    def close(self) -> None:
        """End everything that it started."""


class TimedIterator(Pipeline):
    """A framework's iterator, timed from outside. A batch is released when the next one arrives."""

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
        """Nothing to do: the framework counts references to its tensors."""

    def waits_ns(self) -> dict[str, int]:
        return {WAITED: self._waited_ns}
