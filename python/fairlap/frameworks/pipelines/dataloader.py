"""PyTorch's DataLoader, as its documentation shows: a dataset, shuffled and collated, with worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.pipelines.input_pipeline import (
    PREFETCH,
    WORKERS,
    InputPipeline,
    Opened,
    prefetch_in,
    workers_in,
)
from fairlap.models.sources.stored_items.stored_items import StoredItems


class DataLoader(InputPipeline):
    name = "dataloader"
    packages = ("torch==2.13.0", "pillow==13.0.0", "pyarrow==26.0.1")
    module = "torch"
    tunable: ClassVar = {WORKERS: ("1", "2", "4", "8", "2:prefetch=4", "4:prefetch=4")}

    def open(self, items: StoredItems, wanted: Settings) -> Opened:
        workers, prefetch = workers_in(wanted.options) or 0, prefetch_in(wanted.options)
        if prefetch is not None and not workers:
            raise Unsupported(f"{PREFETCH} is for worker processes; add {WORKERS}=1 or more")
        import torch
        from torch.utils.data import DataLoader as Loader

        from fairlap.frameworks.pipelines import torch_datasets

        self._version = str(torch.__version__)
        torch.set_num_threads(wanted.threads)
        in_order = items.stored_as in ("tar", "parquet")
        kind: Any = torch_datasets.InFileOrder if in_order else torch_datasets.ByNumber

        def batches(seed: int) -> Iterator[tuple[Any, Any]]:
            return iter(
                Loader(
                    kind(items),
                    batch_size=items.batch,
                    shuffle=None if in_order else True,
                    generator=torch.Generator().manual_seed(seed),
                    num_workers=workers,
                    prefetch_factor=prefetch,
                )
            )

        return Opened(
            batches,
            array=lambda tensor: tensor.numpy(),
            parts=max(1, workers) if in_order else 1,
            in_force={WORKERS: str(workers), **({PREFETCH: str(prefetch or 2)} if workers else {})},
        )
