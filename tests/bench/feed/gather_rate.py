"""Samples per second of one job: shuffled float32 rows of 4 KiB out of memory, in batches of 256, as tensors of torch.

The consumer of every pipeline reads one element and releases the batch. DataLoader is shown as it is usually written
(one sample at a time, collated) and with whole batches taken by index, each with 0, 1 and 2 workers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from fairlap.engine import Feeder
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

SAMPLES = 65_536
FEATURES = 1024
BATCH = 256
TURNS = 5
SECONDS = 1.0

rows = np.random.default_rng(1).standard_normal((SAMPLES, FEATURES), dtype=np.float32)
stalls_off: list[float] = []


class Rows:
    """A dataset by its methods: one row for a number, many for a list of them."""

    def __init__(self) -> None:
        self.rows = torch.from_numpy(rows)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, which: Any) -> torch.Tensor:
        return self.rows[which]


def by_sample(workers: int) -> Iterator[torch.Tensor]:
    return _endless(
        DataLoader(Rows(), BATCH, shuffle=True, drop_last=True, num_workers=workers, persistent_workers=workers > 0)
    )


def by_batch(workers: int) -> Iterator[torch.Tensor]:
    data = Rows()
    sampler = BatchSampler(RandomSampler(data), BATCH, drop_last=True)
    return _endless(
        DataLoader(data, sampler=sampler, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    )


def _endless(loader: Any) -> Iterator[torch.Tensor]:
    while True:
        yield from loader


def peer_rate(loading: Callable[[int], Iterator[torch.Tensor]], workers: int) -> float:
    batches = loading(workers)
    float(next(batches)[0, 0])  # starts the workers
    done = 0
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        float(next(batches)[0, 0])
        done += 1
    return done * BATCH / (time.perf_counter() - began)


def feeder_rate(threads: int) -> float:
    with Feeder(rows, batch=BATCH, threads=threads, seed=1, epochs=None, last="drop") as feeder:
        done = 0
        first, began = feeder.stalls, time.perf_counter_ns()
        while time.perf_counter_ns() - began < SECONDS * 1e9:
            batch = feeder.next()
            assert batch is not None
            float(torch.utils.dlpack.from_dlpack(batch.__dlpack__())[0, 0])
            batch.release()
            done += 1
        last, wall_ns = feeder.stalls, time.perf_counter_ns() - began
    parts = ("consumer_ns", "source_ns", "staging_ns", "no_slot_ns")
    stalls_ns = sum(getattr(last, part) - getattr(first, part) for part in parts)
    stalls_off.append(abs(stalls_ns - wall_ns) / wall_ns)
    return done * BATCH / (wall_ns / 1e9)


def main() -> None:
    torch.set_num_threads(1)  # with more, its threads wait for each other at every batch, and it is slower
    pipelines: dict[str, Callable[[], float]] = {}
    for threads in (1, 2):
        pipelines[f"feeder, {threads} threads"] = partial(feeder_rate, threads)
    for workers in (0, 1, 2):
        pipelines[f"DataLoader, {workers} workers"] = partial(peer_rate, by_sample, workers)
        pipelines[f"DataLoader by whole batches, {workers} workers"] = partial(peer_rate, by_batch, workers)
    rates: dict[str, list[float]] = {name: [] for name in pipelines}
    for _ in range(TURNS):
        for name, rate in pipelines.items():
            rates[name].append(rate())
    print(json.dumps({"samples_per_s": rates, "stalls_off": stalls_off}))


main()
