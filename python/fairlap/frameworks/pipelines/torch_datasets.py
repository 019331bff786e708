"""Datasets of PyTorch over items on disk. At the top of a module, so that worker processes can be given them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor, from_numpy
from torch.utils.data import IterableDataset, get_worker_info

from fairlap.models.sources.stored_items.decoding import decoded
from fairlap.models.sources.stored_items.parquet_rows import parquet_samples
from fairlap.models.sources.stored_items.stored_items import StoredItems
from fairlap.models.sources.stored_items.tar_samples import tar_samples

Sample = tuple[Tensor, int]


class Images:
    """Of a file each, by number."""

    def __init__(self, items: StoredItems) -> None:
        self._items = items

    def __len__(self) -> int:
        return self._items.items

    def __getitem__(self, number: int) -> Sample:
        return _pixels(self._items.files[number], self._items), self._items.labels[number]


class Rows:
    """Of one file, by number. Every worker process maps it itself."""

    def __init__(self, items: StoredItems) -> None:
        self._items = items
        self._rows: Any = None
        self._labels = np.load(items.files[1])

    def __len__(self) -> int:
        return self._items.items

    def __getitem__(self, number: int) -> Sample:
        if self._rows is None:
            self._rows = np.load(self._items.files[0], mmap_mode="r")
        return from_numpy(np.array(self._rows[number])), int(self._labels[number])


class InFileOrder(IterableDataset[Sample]):
    """Of one file, from its beginning. Each worker process takes its part of the samples or row groups."""

    def __init__(self, items: StoredItems) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Sample]:
        info, items = get_worker_info(), self._items
        part, parts = (0, 1) if info is None else (info.id, info.num_workers)
        if items.stored_as == "tar":
            found = tar_samples(items.files[0], part, parts)
        else:
            found = parquet_samples(items.files[0], items.columns, items.batch, part, parts)
        for encoded, label in found:
            yield _pixels(encoded, items), label


def _pixels(encoded: bytes | str, items: StoredItems) -> Tensor:
    found = decoded(encoded, *items.height_and_width, items.dtype)
    return from_numpy(found if found.flags.writeable else found.copy())  # which PyTorch asks for
