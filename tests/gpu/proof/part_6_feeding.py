"""Feeding: the machine's own rate of copies from pinned memory, what PyTorch's DataLoader makes of it, and ours."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from statistics import median
from typing import Any

from .record import Deadline, NotHere, PartRecord, Step, described

MIB = 1 << 20
BATCHES_MIB = (1, 4, 16, 64)
COPIES = 40
ROUNDS = 5
_WORKERS = (0, 2, 4)
_DATA_MIB = 512


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = (
        Step("the machine's own rate", 30, partial(_own_rate, record)),
        Step("DataLoader with pin_memory", 90, partial(_data_loader, record)),
        Step("the feeder", 5, partial(_feeder, record)),
    )
    record.take(steps, deadline)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise NotHere("PyTorch is not installed") from None
    if not torch.cuda.is_available():
        raise NotHere("this PyTorch has no CUDA")
    return torch


def _own_rate(record: PartRecord) -> None:
    """Copies back to back on one stream, from one pinned buffer to one on the device, by events."""
    torch = _torch()
    stream = torch.cuda.Stream()
    for size in BATCHES_MIB:
        for pinned in (True, False):
            host = torch.empty(size * MIB, dtype=torch.uint8, pin_memory=pinned).fill_(1)
            device = torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
            rates = []
            with torch.cuda.stream(stream):
                device.copy_(host, non_blocking=True)
                for _ in range(ROUNDS):
                    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    stream.synchronize()
                    start.record()
                    for _ in range(COPIES):
                        device.copy_(host, non_blocking=True)
                    stop.record()
                    stop.synchronize()
                    rates.append(COPIES * size * MIB / (start.elapsed_time(stop) * 1e-3) / 1e9)
            record.row("copies to the device", mib=size, pinned=pinned, gb_per_s=median(rates), least=min(rates))


def _data_loader(record: PartRecord) -> None:
    """Rows gathered by index, pinned by its thread, copied without waiting: as its manual recommends."""
    torch = _torch()
    width = 64 * 1024
    rows = torch.randint(0, 255, (_DATA_MIB * MIB // width, width), dtype=torch.uint8)
    data = torch.utils.data.TensorDataset(rows)
    for size in BATCHES_MIB[:3]:
        for workers in _WORKERS:
            loader = torch.utils.data.DataLoader(
                data, batch_size=size * MIB // width, shuffle=True, num_workers=workers, pin_memory=True
            )
            cells: dict[str, Any] = {"batch_mib": size, "workers": workers, "gb_per_s": None, "told": ""}
            try:
                fed, seconds = _fed(torch, loader)
                cells["gb_per_s"] = fed / seconds / 1e9
            except RuntimeError as error:  # its workers need shared memory, of which containers have little
                cells["told"] = described(error)
            record.row("DataLoader", **cells)


def _fed(torch: Any, loader: Iterable[Any]) -> tuple[int, float]:
    fed, begun = 0, time.perf_counter()
    for (batch,) in loader:
        fed += batch.to("cuda", non_blocking=True).nbytes
        if time.perf_counter() - begun > 4.0:
            break
    torch.cuda.synchronize()
    return fed, time.perf_counter() - begun


def _feeder(record: PartRecord) -> None:
    """The goals are told as unknown rather than left out: what is not there has not been reached."""
    why = "the feeder delivers to host memory only: it makes no pinned copies to a device"
    for goal, wanted in (("from 4 MiB", ">= 97%"), ("at 1 MiB", ">= 90%")):
        record.goal(
            f"feeder: share of the machine's own pinned copy rate {goal}", wanted, None, "", reached=None, why=why
        )
    raise NotHere(why)
