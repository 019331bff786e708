"""Items on disk by their numbers: what a pipeline that shuffles by number is given, in each of its processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.models.sources.stored_items.decoding import Pixels, decoded
from fairlap.models.sources.stored_items.stored_items import StoredItems


class ItemsByNumber:
    """Images of a file each, or rows of one file, which every process maps itself."""

    def __init__(self, items: StoredItems) -> None:
        self._items = items
        self._rows: Any = None
        self._labels = np.load(items.files[1]) if items.stored_as == "rows" else items.labels

    def __len__(self) -> int:
        return self._items.items

    def item(self, number: int) -> tuple[Pixels, int]:
        items = self._items
        label = int(self._labels[number])
        if items.stored_as != "rows":
            return decoded(items.files[number], *items.height_and_width, items.dtype), label
        if self._rows is None:
            self._rows = np.load(items.files[0], mmap_mode="r")
        return np.array(self._rows[number]), label
