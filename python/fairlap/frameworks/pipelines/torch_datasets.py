"""Datasets of PyTorch over items on disk. At the top of a module, so that worker processes can be given them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor, from_numpy
from torch.utils.data import IterableDataset, get_worker_info

from fairlap.models.sources.stored_items.by_number import ItemsByNumber
from fairlap.models.sources.stored_items.decoding import decoded
from fairlap.models.sources.stored_items.parquet_rows import parquet_samples
from fairlap.models.sources.stored_items.stored_items import StoredItems
from fairlap.models.sources.stored_items.tar_samples import tar_samples

Sample = tuple[Tensor, int]


class ByNumber(ItemsByNumber):
    def __getitem__(self, number: int) -> Sample:
        values, label = self.item(number)
        return _tensor(values), label


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
            yield _tensor(decoded(encoded, *items.height_and_width, items.dtype)), label


def _tensor(values: np.ndarray) -> Tensor:
    return from_numpy(values if values.flags.writeable else values.copy())  # which PyTorch asks for
