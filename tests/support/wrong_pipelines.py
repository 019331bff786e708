"""A pipeline whose variants do less or other work than they should, one way each; the first one is honest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.pipelines.input_pipeline import Opened
from fairlap.frameworks.pipelines.loop import Loop
from fairlap.models.sources.stored_items.stored_items import StoredItems
from PIL import Image

Batches = Iterator[tuple[Any, Any]]


class WrongPipeline(Loop):
    name = "wrong"
    packages = ()
    variants = (
        *("", "drop-last", "repeat", "wrong-label", "smaller", "nearest", "undecoded", "twice", "kept"),
        *("large-batches", "another-type"),
    )

    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        honest = super().open(items, wanted).batches
        trick = TRICKS.get(wanted.variant)
        return Opened(honest if trick is None else partial(trick, items, honest))


def drop_last(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    yield from (pair for pair in honest(seed) if len(pair[1]) == items.batch)


def repeat(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    """Yield the first batch in place of the second."""
    first, _, *others = list(honest(seed))
    yield from (first, first, *others)


def twice(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    yield from honest(seed)
    yield from honest(seed)


def wrong_label(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    yield from ((images, (labels + 1) % 3) for images, labels in honest(seed))


def smaller(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    yield from ((images[:, ::2, ::2], labels) for images, labels in honest(seed))


def nearest(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    """Without antialiasing, which is far quicker."""
    height, width = items.height_and_width
    for first in range(0, items.items, items.batch):
        found = []
        for file in items.files[first : first + items.batch]:
            with Image.open(file) as opened:
                found.append(np.asarray(opened.resize((width, height), Image.Resampling.NEAREST)))
        yield np.stack(found), np.array(items.labels[first : first + items.batch])


def undecoded(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    contents = [np.fromfile(file, np.uint8) for file in items.files]
    for first in range(0, items.items, items.batch):
        part = contents[first : first + items.batch]
        stacked = np.zeros((len(part), max(map(len, part))), np.uint8)
        yield stacked, np.array(items.labels[first : first + items.batch])


def large_batches(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    images, labels = zip(*honest(seed), strict=True)
    yield np.concatenate(images), np.concatenate(labels)


def another_type(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    yield from ((images.astype(np.float64), labels) for images, labels in honest(seed))


_kept: list[tuple[Any, Any]] = []


def kept(items: StoredItems, honest: Callable[[int], Batches], seed: int) -> Batches:
    """Yield the first pass again and again, in another order of batches."""
    if not _kept:
        _kept.extend(honest(seed))
    yield from _kept[:-1][::-1]
    yield _kept[-1]


TRICKS = {
    "drop-last": drop_last,
    "repeat": repeat,
    "twice": twice,
    "wrong-label": wrong_label,
    "smaller": smaller,
    "nearest": nearest,
    "undecoded": undecoded,
    "large-batches": large_batches,
    "another-type": another_type,
    "kept": kept,
}
