"""PyTorch's DataLoader, used as its documentation shows: a dataset of samples, shuffled and collated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from torch import Generator, from_numpy
from torch.utils.data import DataLoader

from fairlap import quantity_text
from fairlap.data.pipeline import NUMBERS, Job, TimedIterator
from fairlap.models.arrays import Arrays


class Samples:
    """A map-style dataset over mapped files. Every worker process maps them itself."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._mapped: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return self._job.samples

    def __getitem__(self, number: int) -> dict[str, Any]:
        if not self._mapped:
            self._mapped = {name: np.load(file, mmap_mode="r") for name, file in self._job.files.items()}
        sample: dict[str, Any] = {name: from_numpy(np.array(array[number])) for name, array in self._mapped.items()}
        return {**sample, NUMBERS: number} if self._job.numbered else sample


class DataLoaderPipeline(TimedIterator):
    def __init__(self, job: Job, workers: int) -> None:
        self.description = f"DataLoader with {quantity_text.count(workers, 'worker')}"
        loader = DataLoader(
            Samples(job),
            job.batch,
            shuffle=True,
            drop_last=True,
            generator=Generator().manual_seed(job.seed),
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        self._loader: Any = loader
        super().__init__(_epochs(loader, job.epochs))

    def arrays(self) -> Arrays:
        return {name: tensor.numpy() for name, tensor in self.held.items()}

    def close(self) -> None:
        """Drop the last reference to the loader, which ends its workers."""
        self.held, self._batches, self._loader = {}, iter(()), None


def _epochs(loader: Any, epochs: int | None) -> Iterator[Mapping[str, Any]]:
    while epochs is None or epochs > 0:
        yield from loader
        epochs = None if epochs is None else epochs - 1
