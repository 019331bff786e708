"""What an input pipeline is given of data on disk, and what it must yield: each item once, in batches.

A batch is a pair: the items in one array, pixels as (item, height, width, channel), and their labels as int64.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.request.fields.data.stored_data import PageCache

StoredAs = Literal["images", "tar", "parquet", "rows"]
INDEX = "items.json"
PASS = "pass"  # the input that draws the order of a pass, and the output that counts its items
LOOKED_AT = "looked_at"  # the input that says whether each item of it is compared with the reference


class StoredItems(msgspec.Struct, frozen=True):
    """The form in which items are stored; a pipeline knows a plain way to read each of them, or refuses it."""

    stored_as: StoredAs
    files: tuple[str, ...]  # of images one for each item; of rows the items, then their labels; else a single one
    items: int
    batch: int
    shape: tuple[int, ...]  # of one item as it is yielded; of an image height, width and 3
    dtype: str
    cache: PageCache = "warm"
    labels: tuple[int, ...] = ()  # of the files of images; elsewhere they are stored with the items
    columns: tuple[str, str] = ("", "")  # of Parquet: the one of encoded images, and the one of labels

    @property
    def height_and_width(self) -> tuple[int, int]:
        return self.shape[0], self.shape[1]

    @property
    def has_pixels(self) -> bool:
        """Whether items are decoded and resized, rather than copied."""
        return self.stored_as != "rows"

    @property
    def bytes_each(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


def pass_inputs(seed: int, *, looked_at: bool = False) -> dict[str, npt.NDArray[np.int64]]:
    """Make the inputs of a call, which is a pass."""
    return {PASS: np.array([seed], np.int64), LOOKED_AT: np.array([looked_at], np.int64)}


def read_index(folder: Path) -> StoredItems:
    return msgspec.json.decode((folder / INDEX).read_bytes(), type=StoredItems)


def write_index(folder: Path, items: StoredItems) -> None:
    (folder / INDEX).write_bytes(msgspec.json.encode(items))


def shuffled(items: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw the order of a pass."""
    return np.random.default_rng(seed).permutation(items)
