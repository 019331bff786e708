"""What the items of a pass are recognised by, whichever library decoded them.

Decoders of JPEG differ by single steps of brightness, so an image is known by the means of a grid of its pixels, which
differ by less than that between decoders and by far more between images. Images that show most how they were resized
are kept as a whole. Rows are copied and not computed, so they are known by a hash of their bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.array_files import safetensors
from fairlap.models.sources.stored_items.stored_items import StoredItems

Array = npt.NDArray[Any]

_FILE = "reference-items.safetensors"
_CELLS = 8  # of the grid, on each side
_MOST_KEPT = 48
_MOST_TRIED = 256  # of which those are kept whose edges change most when resized in another way


@dataclass(frozen=True)
class ReferenceItems:
    marks: Array  # a row for each item: means of its grid, or the hash of its bytes
    labels: Array  # int64
    kept: Array  # numbers of the images that are kept
    pixels: Array  # theirs, uint8

    @classmethod
    def read(cls, folder: Path) -> ReferenceItems:
        found = safetensors.read(folder / _FILE)
        return cls(found["marks"], found["labels"], found["kept"], found["pixels"])

    def write(self, folder: Path) -> None:
        safetensors.write(folder / _FILE, vars(self))


def marks_of(items: Array, of: StoredItems) -> Array:
    """Give a row for each item of a batch."""
    return grid_means(in_bytes(items)) if of.has_pixels else hashes(items)


def in_bytes(pixels: Array) -> Array:
    """Scale to 0..255, without rounding."""
    return pixels.astype(np.float32) * np.float32(1 if pixels.dtype == np.uint8 else 255)


def grid_means(pixels: Array) -> Array:
    count, height, width, _ = pixels.shape
    rows, columns = (np.linspace(0, size, min(_CELLS, size) + 1).astype(int) for size in (height, width))
    sums = np.add.reduceat(np.add.reduceat(pixels, rows[:-1], axis=1), columns[:-1], axis=2)
    areas = np.outer(np.diff(rows), np.diff(columns))[None, :, :, None]
    means: Array = (sums / areas).astype(np.float32).reshape(count, -1)
    return means


def hashes(rows: Array) -> Array:
    whole = np.ascontiguousarray(rows)
    digests = [hashlib.blake2b(whole[number].tobytes(), digest_size=8).digest() for number in range(len(whole))]
    return np.frombuffer(b"".join(digests), "<i8").reshape(-1, 1)


class Collected:
    """Collects the reference while items are read one after the other."""

    def __init__(self, of: StoredItems) -> None:
        self._of = of
        self._marks: list[Array] = []
        self._labels: list[int] = []
        self._tried: list[tuple[float, int, Array]] = []  # how much it shows, its number, its pixels
        drawn = np.random.default_rng(0).permutation(of.items)[:_MOST_TRIED]
        self._drawn = set(drawn.tolist()) if of.has_pixels else set()

    def add(self, item: Array, label: int, roughly: Array | None = None) -> None:
        """``roughly`` are the pixels of an image that was resized without antialiasing."""
        number = len(self._labels)
        self._marks.append(marks_of(item[None], self._of)[0])
        self._labels.append(label)
        if number in self._drawn and roughly is not None:
            shows = float(np.abs(in_bytes(item) - in_bytes(roughly)).mean())
            self._tried.append((shows, number, np.rint(in_bytes(item)).astype(np.uint8)))

    @property
    def wants_rough(self) -> bool:
        return len(self._labels) in self._drawn

    def reference(self) -> ReferenceItems:
        kept = sorted(self._tried, key=lambda each: -each[0])[:_MOST_KEPT]
        pixels = [each for _, _, each in kept]
        return ReferenceItems(
            np.stack(self._marks),
            np.array(self._labels, np.int64),
            np.array([number for _, number, _ in kept], np.int64),
            np.stack(pixels) if pixels else np.zeros((0, 1), np.uint8),
        )
