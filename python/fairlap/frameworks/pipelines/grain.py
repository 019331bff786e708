"""grain, as its documentation shows: a source of items by number, shuffled, mapped and batched, read in threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.pipelines.input_pipeline import (
    PREFETCH,
    WORKERS,
    InputPipeline,
    Opened,
    prefetch_in,
    workers_in,
)
from fairlap.models.sources.stored_items.by_number import ItemsByNumber
from fairlap.models.sources.stored_items.stored_items import StoredItems

PROCESSES = "processes"
_THREADS, _BUFFER = 16, 500  # of grain's ReadOptions, by default


class Grain(InputPipeline):
    name = "grain"
    packages = ("grain==0.2.18", "pillow==13.0.0")
    module = "grain"
    options: ClassVar = {WORKERS: (), PREFETCH: (), PROCESSES: ()}
    tunable: ClassVar = {WORKERS: ("1", "2", "4"), PREFETCH: ("64",)}

    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        if items.stored_as in ("tar", "parquet"):
            raise Unsupported(f"grain reads items by their numbers, and a {items.stored_as} file is read in its order")
        threads, buffer = workers_in(wanted.options), prefetch_in(wanted.options)
        processes = _processes_in(wanted.options)
        import grain

        if processes:
            from absl import flags

            flags.FLAGS.mark_as_parsed()  # which its worker processes read
        self._version = str(getattr(grain, "__version__", "")) or _installed_version()
        reading = grain.ReadOptions(
            num_threads=_THREADS if threads is None else threads, prefetch_buffer_size=buffer or _BUFFER
        )

        def batches(seed: int) -> Iterator[tuple[Any, Any]]:
            data = grain.MapDataset.source(_Source(items)).seed(seed).shuffle().to_iter_dataset(reading)
            data = data.batch(items.batch, drop_remainder=False)
            if processes:
                data = data.mp_prefetch(grain.MultiprocessingOptions(num_workers=processes))
            return iter(data)

        in_force = {WORKERS: str(reading.num_threads), PREFETCH: str(reading.prefetch_buffer_size)}
        return Opened(batches, parts=max(1, processes), in_force={**in_force, PROCESSES: str(processes)})


def _processes_in(options: Any) -> int:
    from fairlap.frameworks.pipelines.input_pipeline import MOST_WORKERS, whole_number_option

    return whole_number_option(options, PROCESSES, MOST_WORKERS) or 0


def _installed_version() -> str:
    from importlib.metadata import version

    return version("grain")


class _Source(ItemsByNumber):
    def __getitem__(self, number: int) -> tuple[Any, Any]:
        values, label = self.item(number)
        return values, np.int64(label)
