"""Passes of one pipeline as calls: each makes the pipeline from the files on disk and takes every batch of it.

With a cold page cache the files leave it before each pass. That is not part of the pass, so the pass is timed here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.frameworks.adapter_parts.passes.look import Look, OtherItems
from fairlap.machine.files import page_cache
from fairlap.models.arrays import Arrays
from fairlap.models.sources.stored_items.stored_items import LOOKED_AT, PASS, StoredItems

Batches = Callable[[int], Iterator[tuple[Any, Any]]]
"""Opens a pass, given the seed of its order."""

FIRST_BATCH = "first_batch_ns"
STILL_CACHED = 0.02  # of the pages: more of them make a cold pass a warmer one
_MOST_KEPT = 2**20  # times


@dataclass(frozen=True)
class PassDone:
    seed: int
    items: int
    looked_at: bool


class Passes:
    """``array`` gives what a pipeline yields as NumPy, without a copy. ``parts`` of a pass have a last batch each."""

    def __init__(
        self, items: StoredItems, folder: Path, batches: Batches, array: Callable[[Any], Any], parts: int = 1
    ) -> None:
        self._items, self._folder, self._batches, self._array = items, folder, batches, array
        self._parts = parts
        self._dtype = np.dtype(items.dtype)
        self._times_ns: list[float] = []
        self._first_ns: list[float] = []
        self._cached: list[float] = []  # the share of pages that stayed, before each cold pass

    def bind(self, inputs: Arrays) -> Callable[[], PassDone]:
        seed, looked_at = int(inputs[PASS][0]), bool(inputs[LOOKED_AT][0])

        def call() -> PassDone:
            if looked_at:
                return self._looked_at(seed)
            if self._items.cache == "cold":
                page_cache.evict(self._items.files)
                _keep(self._cached, page_cache.resident_share(self._items.files))
            return self._timed(seed)

        return call

    def outputs(self, done: PassDone) -> dict[str, Any]:
        found = {PASS: np.array([done.seed, done.items], np.float32)}
        if done.looked_at:
            found[FIRST_BATCH] = np.array([median(self._first_ns) if self._first_ns else np.nan])
        return found

    @property
    def method(self) -> str:
        return "the clock around a pass, after its files left the page cache"

    def newest_ns(self, calls: int) -> Sequence[float]:
        return self._times_ns[-calls:]

    def notices(self) -> tuple[Notice, ...]:
        share = median(self._cached) if self._cached else 0.0
        if share <= STILL_CACHED:
            return ()
        text = f"{quantity_text.share(share)} of the data stayed in the page cache, so its passes were not cold"
        return (Notice("W_PAGE_CACHE", text),)

    def _timed(self, seed: int) -> PassDone:
        began_ns, first_ns, count, sizes = time.perf_counter_ns(), 0, 0, _Sizes(self._items, self._parts)
        for items, labels in self._batches(seed):
            if not count:
                first_ns = time.perf_counter_ns() - began_ns
            count += sizes.add(self._checked(items), len(labels))
        _keep(self._times_ns, float(time.perf_counter_ns() - began_ns))
        _keep(self._first_ns, float(first_ns))
        sizes.require_all()
        return PassDone(seed, count, looked_at=False)

    def _looked_at(self, seed: int) -> PassDone:
        look, sizes = Look(self._items, self._folder), _Sizes(self._items, self._parts)
        count = 0
        for items, labels in self._batches(seed):
            array = self._checked(items)
            count += sizes.add(array, len(labels))
            look.see(array, np.asarray(self._array(labels)).reshape(-1))
        sizes.require_all()
        look.end()
        return PassDone(seed, count, looked_at=True)

    def _checked(self, items: Any) -> Any:
        """Refuse what is not decoded, resized and stacked, in every pass."""
        array = self._array(items)
        shape, dtype = getattr(array, "shape", ()), getattr(array, "dtype", None)
        if tuple(shape[1:]) != self._items.shape or dtype != self._dtype:
            wanted = f"{self._items.dtype} of {_shape(self._items.shape)}"
            raise OtherItems("form of items", f"it yields items of {dtype} and {_shape(shape[1:])}, not {wanted}")
        return array


class _Sizes:
    """The sizes of a pass's batches. Each part that a process reads by itself may end in a small one."""

    def __init__(self, items: StoredItems, parts: int) -> None:
        self._wanted, self._parts = items, parts
        self._items = self._incomplete = 0

    def add(self, batch: Any, labels: int) -> int:
        size = len(batch)
        if labels != size:
            raise OtherItems("form of items", f"it yields a batch of {size} items with {labels} labels")
        self._items += size
        self._incomplete += size < self._wanted.batch
        if self._items > self._wanted.items:
            raise OtherItems("number of items", f"it yields more than the {self._wanted.items:,} items in a pass")
        if size > self._wanted.batch or self._incomplete > self._parts:
            raise OtherItems(
                "size of batches", f"it yields batches of {size} items; {self._wanted.batch} were asked for"
            )
        return size

    def require_all(self) -> None:
        missing = self._wanted.items - self._items
        if 0 < missing == self._wanted.items % self._wanted.batch and not self._incomplete:
            raise OtherItems(
                "last batch dropped", f"it drops the last batch: {missing} of {self._wanted.items:,} items"
            )
        if missing:
            raise OtherItems(
                "number of items", f"it yields {self._items:,} items in a pass over {self._wanted.items:,}"
            )


def _shape(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes)) or "no shape"


def _keep(found: list[float], value: float) -> None:
    found.append(value)
    del found[:-_MOST_KEPT]
