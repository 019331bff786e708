"""A plain loop with Pillow and NumPy, alone or with a pool: ``loop:workers=4:pool=processes``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.contract import Settings
from fairlap.frameworks.pipelines.input_pipeline import (
    PREFETCH,
    WORKERS,
    InputPipeline,
    Opened,
    prefetch_in,
    workers_in,
)
from fairlap.models.sources.stored_items.decoding import decoded
from fairlap.models.sources.stored_items.parquet_rows import parquet_samples
from fairlap.models.sources.stored_items.stored_items import StoredItems, shuffled
from fairlap.models.sources.stored_items.tar_samples import tar_samples

POOL = "pool"
_POOLS = {"threads": ThreadPoolExecutor, "processes": ProcessPoolExecutor}
_BATCHES_AHEAD = 2

Sample = tuple[Any, int]  # encoded or the path of a file, and its label


class Loop(InputPipeline):
    name = "loop"
    packages: ClassVar[tuple[str, ...]] = ("pillow==13.0.0", "pyarrow==26.0.1", "numpy==2.4.6")
    module = "PIL"
    options: ClassVar = {WORKERS: (), PREFETCH: (), POOL: tuple(_POOLS)}
    tunable: ClassVar = {WORKERS: ("1", "2", "4", "2:pool=processes", "4:pool=processes"), PREFETCH: ("4",)}

    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        import PIL

        self._version = str(PIL.__version__)
        workers, kind = workers_in(wanted.options) or 0, wanted.options.get(POOL, "threads")
        ahead = (prefetch_in(wanted.options) or _BATCHES_AHEAD) * items.batch
        if items.stored_as == "rows":
            return Opened(partial(_batches_of_rows, items), in_force={WORKERS: "0, of rows"})

        def batches(seed: int) -> Iterator[tuple[Any, Any]]:
            decode = partial(_decoded, height=items.shape[0], width=items.shape[1], dtype=items.dtype)
            if not workers:
                yield from _batched(map(decode, samples(items, seed)), items.batch)
                return
            with _POOLS[kind](workers) as pool:
                yield from _batched(_in_pool(pool, decode, samples(items, seed), ahead), items.batch)

        return Opened(batches, in_force={WORKERS: f"{workers} {kind}" if workers else "0"})


def samples(items: StoredItems, seed: int) -> Iterator[Sample]:
    """In a drawn order where items can be read in any, else in that of the file."""
    if items.stored_as == "images":
        for number in shuffled(items.items, seed).tolist():
            yield items.files[number], items.labels[number]
    elif items.stored_as == "tar":
        yield from tar_samples(items.files[0])
    else:
        yield from parquet_samples(items.files[0], items.columns, items.batch)


def _decoded(sample: Sample, height: int, width: int, dtype: str) -> tuple[Any, int]:
    encoded, label = sample
    return decoded(encoded, height, width, dtype), label


def _in_pool(
    pool: Executor, decode: Callable[[Sample], Any], found: Iterable[Sample], ahead: int
) -> Iterator[tuple[Any, int]]:
    """In order, with at most so many on the way."""
    waiting: deque[Future[Any]] = deque()
    for sample in found:
        waiting.append(pool.submit(decode, sample))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _batched(found: Iterable[tuple[Any, int]], batch: int) -> Iterator[tuple[Any, Any]]:
    images: list[Any] = []
    labels: list[int] = []
    for image, label in found:
        images.append(image)
        labels.append(label)
        if len(images) == batch:
            yield np.stack(images), np.array(labels, np.int64)
            images, labels = [], []
    if images:
        yield np.stack(images), np.array(labels, np.int64)


def _batches_of_rows(items: StoredItems, seed: int) -> Iterator[tuple[Any, Any]]:
    rows, labels = np.load(items.files[0], mmap_mode="r"), np.load(items.files[1])
    order = shuffled(items.items, seed)
    for first in range(0, items.items, items.batch):
        chosen = order[first : first + items.batch]
        yield rows[chosen], labels[chosen].astype(np.int64)
