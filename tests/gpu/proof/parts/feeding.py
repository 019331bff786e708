"""Feeding: the machine's own copy rate from pinned memory, and what PyTorch's DataLoader and the feeder reach of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from fairlap.engine import Feeder

from ..driver import MIB, PrimaryContext, Spinner, pinned_rate_gb_per_s, rates_gb_per_s
from ..record import Deadline, NotHere, PartRecord, Step, described

BATCHES_MIB: tuple[int, ...] = (1, 4, 16, 64)
WANTED_SHARE = {1: 0.90, 4: 0.97, 16: 0.97, 64: 0.97}  # of the machine's own rate
FEED_S = 1.5
TURNS = 2  # of the machine's own rate and the feeder's
OVERLAP_MIB, OVERLAP_BATCHES = 16, 400
EVENTS_OFF_BY = 0.05
MOST_TIMES = 20
SLOTS = 6
_WORKERS = (0, 2, 4)
_DATA_MIB = 512
_SAMPLE_BYTES = 64 * 1024


def run(record: PartRecord, deadline: Deadline) -> None:
    steps = (
        Step("the machine's own rate", 8, partial(_own_rate, record)),
        Step("the feeder", 2 * len(BATCHES_MIB) * TURNS * (FEED_S + 1), partial(_feeder, record)),
        Step("copies while the device works", 15, partial(_overlap, record)),
        Step("DataLoader with pin_memory", 45, partial(_data_loader, record)),
    )
    record.take(steps, deadline)


def _own_rate(record: PartRecord) -> None:
    context = PrimaryContext()
    for size in BATCHES_MIB:
        for pinned in (True, False):
            rates = rates_gb_per_s(context, size * MIB, pinned=pinned)
            record.row("copies to the device", mib=size, pinned=pinned, gb_per_s=median(rates), least=min(rates))


def _samples() -> Any:
    return np.random.default_rng(1).integers(0, 255, (_DATA_MIB * MIB // _SAMPLE_BYTES, _SAMPLE_BYTES), dtype=np.uint8)


def _threads() -> int:
    return max(1, min(8, len(os.sched_getaffinity(0)) - 1))


def _feeder_of(samples: Any, batch_mib: int, *, shuffled: bool) -> Feeder:
    return Feeder(
        samples,
        batch=batch_mib * MIB // _SAMPLE_BYTES,
        slots=SLOTS,
        threads=_threads(),
        seed=1 if shuffled else None,
        epochs=None,
        device="cuda:0",
    )


def _feeder(record: PartRecord) -> None:
    context, samples = PrimaryContext(), _samples()
    stream = context.new_stream()
    for size in BATCHES_MIB:
        for shuffled in (False, True):
            shares = []
            for _ in range(TURNS):
                own = pinned_rate_gb_per_s(context, size * MIB)
                with _feeder_of(samples, size, shuffled=shuffled) as feeder:
                    fed, seconds = _taken(feeder, context, stream, lambda _, since: since < FEED_S)
                    stalls = feeder.stalls
                shares.append(fed / seconds / 1e9 / own)
                parts = {
                    name: getattr(stalls, f"{name}_ns") or 0
                    for name in ("consumer", "source", "staging", "link", "no_slot")
                }
                record.row(
                    "the feeder",
                    batch_mib=size,
                    order="shuffled" if shuffled else "in order",
                    threads=_threads(),
                    gb_per_s=fed / seconds / 1e9,
                    own_gb_per_s=own,
                    stalls_off_by_share=abs(sum(parts.values()) / stalls.wall_ns - 1),
                    **{f"{name}_share": ns / stalls.wall_ns for name, ns in parts.items()},
                )
            record.goal(
                f"feeder, {size} MiB {'shuffled' if shuffled else 'in order'}: share of the machine's own rate",
                f">= {WANTED_SHARE[size]:.0%}",
                median(shares),
                "",
                reached=median(shares) >= WANTED_SHARE[size],
                why=f"turns {', '.join(f'{each:.1%}' for each in shares)}",
            )
    worst = max(row["stalls_off_by_share"] for row in record.rows("the feeder"))
    record.goal(
        "feeder: difference between the stall times and its wall time", "<= 1%", worst, "", reached=worst <= 0.01
    )


def _taken(
    feeder: Feeder,
    context: PrimaryContext,
    stream: int,
    proceed: Callable[[int, float], bool],
    work: Callable[[], None] = lambda: None,
) -> tuple[int, float]:
    """Consume batches without waiting: the stream waits for each batch, works on it and releases it."""
    fed, begun = 0, time.perf_counter()
    for number, batch in enumerate(feeder):
        batch.__dlpack__(stream=stream)
        work()
        fed += batch.nbytes
        batch.release([stream])
        if not proceed(number + 1, time.perf_counter() - begun):
            break
    context.synchronize()
    return fed, time.perf_counter() - begun


def _overlap(record: PartRecord) -> None:
    """Time the batches alone, the work alone, and both: how much of the shorter hides behind the longer."""
    context, samples = PrimaryContext(), _samples()
    stream, spinner = context.new_stream(), Spinner()

    def fed(work: Callable[[], None]) -> float:
        with _feeder_of(samples, OVERLAP_MIB, shuffled=False) as feeder:
            return _taken(feeder, context, stream, lambda number, _: number < OVERLAP_BATCHES, work)[1]

    fed(lambda: None)
    copies_s = fed(lambda: None)
    work_ns = round(copies_s * 1e9 / OVERLAP_BATCHES)  # as long as the feeder takes, however fast the link is

    def worked() -> float:
        begun = time.perf_counter()
        for _ in range(OVERLAP_BATCHES):
            spinner.spin_ns(stream, work_ns)
        context.synchronize()
        return time.perf_counter() - begun

    worked()
    work_s = worked()
    both_s = fed(lambda: spinner.spin_ns(stream, work_ns))
    by_events = _hidden_by_events(samples, context, stream, lambda: spinner.spin_ns(stream, work_ns))
    hidden = (copies_s + work_s - both_s) / min(copies_s, work_s)
    record.row(
        "copies while the device works",
        batch_mib=OVERLAP_MIB,
        batches=OVERLAP_BATCHES,
        copies_s=copies_s,
        work_s=work_s,
        both_s=both_s,
        hidden_share=hidden,
        hidden_by_events=by_events,
    )
    record.goal("feeder: copies hidden behind work of the same length", ">= 98%", hidden, "", reached=hidden >= 0.98)
    difference = None if by_events is None else by_events - hidden
    record.goal(
        "feeder: the hidden share by events less that by wall time",
        f"+- {EVENTS_OFF_BY:.0%}",
        difference,
        "",
        reached=None if difference is None else abs(difference) <= EVENTS_OFF_BY,
    )
    spinner.close()


def _hidden_by_events(samples: Any, context: PrimaryContext, stream: int, work: Callable[[], None]) -> float | None:
    with _feeder_of(samples, OVERLAP_MIB, shuffled=False) as feeder:
        feeder.time_copies()

        def proceed(number: int, _: float) -> bool:
            times = feeder.copy_times  # of slots that were filled again, which threads that wait for a core do late
            counts = times is not None and times.copied_ns > 0
            return number < OVERLAP_BATCHES or (not counts and number < MOST_TIMES * OVERLAP_BATCHES)

        _taken(feeder, context, stream, proceed, work)
        times = feeder.copy_times
    return times.hidden_ns / times.copied_ns if times is not None and times.copied_ns else None


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise NotHere("PyTorch is not installed", "torch") from None
    if not torch.cuda.is_available():
        raise NotHere("this PyTorch has no CUDA", "torch")
    return torch


def _data_loader(record: PartRecord) -> None:
    """Use DataLoader as its manual recommends: gathered by index, pinned by its thread, copied without waiting."""
    torch = _torch()
    data = torch.utils.data.TensorDataset(torch.from_numpy(_samples()))
    for size in BATCHES_MIB[:3]:
        for workers in _WORKERS:
            loader = torch.utils.data.DataLoader(
                data, batch_size=size * MIB // _SAMPLE_BYTES, shuffle=True, num_workers=workers, pin_memory=True
            )
            cells: dict[str, Any] = {"batch_mib": size, "workers": workers, "gb_per_s": None, "note": ""}
            try:
                fed, seconds = _fed(torch, loader)
                cells["gb_per_s"] = fed / seconds / 1e9
            except RuntimeError as error:  # its workers need shared memory, which is scarce in containers
                cells["note"] = described(error)
            record.row("DataLoader", **cells)


def _fed(torch: Any, loader: Iterable[Any]) -> tuple[int, float]:
    fed, begun = 0, time.perf_counter()
    for (batch,) in loader:
        fed += batch.to("cuda", non_blocking=True).nbytes
        if time.perf_counter() - begun > 4.0:
            break
    torch.cuda.synchronize()
    return fed, time.perf_counter() - begun
