"""SPDL, as its documentation shows: a pipeline of stages whose concurrency is set, in threads."""

from __future__ import annotations

from collections.abc import Iterator
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
from fairlap.frameworks.pipelines.loop import samples
from fairlap.models.sources.stored_items.decoding import decoded
from fairlap.models.sources.stored_items.stored_items import StoredItems, shuffled

_WORKERS, _PREFETCH = 4, 3


class Spdl(InputPipeline):
    name = "spdl"
    packages = ("spdl==0.8.0", "pillow==13.0.0", "pyarrow==26.0.1")
    module = "spdl"
    tunable: ClassVar = {WORKERS: ("1", "2", "8"), PREFETCH: ("8",)}

    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        workers = workers_in(wanted.options, least=1) or _WORKERS
        prefetch = prefetch_in(wanted.options) or _PREFETCH
        from importlib.metadata import version

        from spdl.pipeline import PipelineBuilder

        self._version = version("spdl")

        def batches(seed: int) -> Iterator[tuple[Any, Any]]:
            if items.stored_as == "rows":
                rows, labels = np.load(items.files[0], mmap_mode="r"), np.load(items.files[1])
                source: Any = shuffled(items.items, seed).tolist()
                stage: Any = partial(_row, rows, labels)
            else:
                source, stage = samples(items, seed), partial(_decoded, items)
            pipeline = (
                PipelineBuilder()
                .add_source(source)
                .pipe(stage, concurrency=workers)
                .aggregate(items.batch)
                .pipe(_stacked)
                .add_sink(prefetch)
                .build(num_threads=workers)
            )
            with pipeline.auto_stop():
                yield from pipeline

        return Opened(batches, in_force={WORKERS: str(workers), PREFETCH: str(prefetch)})


def _decoded(items: StoredItems, sample: tuple[Any, int]) -> tuple[Any, int]:
    encoded, label = sample
    return decoded(encoded, *items.height_and_width, items.dtype), label


def _row(rows: Any, labels: Any, number: int) -> tuple[Any, int]:
    return np.array(rows[number]), int(labels[number])


def _stacked(found: list[tuple[Any, int]]) -> tuple[Any, Any]:
    return np.stack([item for item, _ in found]), np.array([label for _, label in found], np.int64)
