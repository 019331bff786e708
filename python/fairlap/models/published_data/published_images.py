"""Images with their classes, as a reader of a published layout returns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest

CODE = "E_DATA"
_BRIGHTEST = np.float32(255)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PublishedImages:
    images: Array  # bytes: items, channels, height and width
    labels: Array  # int32: the number of each item's class
    classes: tuple[str, ...]
    held_out: Array | None = None  # whether each item is of the test part; None where the files have no such part

    def test_part(self) -> PublishedImages:
        """Select what scores are computed on: all of it, where the files have no such part."""
        if self.held_out is None:
            return self
        return PublishedImages(self.images[self.held_out], self.labels[self.held_out], self.classes)


def pixels_of(images: Array) -> Array:
    """Scale bytes to 0..1."""
    scaled: Array = images.astype(np.float32) / _BRIGHTEST
    return scaled


def joined(parts: Sequence[PublishedImages], test: Sequence[bool]) -> PublishedImages:
    """Join parts of the same classes; ``test`` says which are held out. One part alone is no split."""
    held = np.concatenate([np.full(len(part.labels), is_test) for part, is_test in zip(parts, test, strict=True)])
    return PublishedImages(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
        parts[0].classes,
        held if held.any() and not held.all() else None,
    )


def refuse(file: Path, why: str) -> InvalidRequest:
    return InvalidRequest(f"{file}: {why}", code=CODE)
