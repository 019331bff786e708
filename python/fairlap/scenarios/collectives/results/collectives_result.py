"""Figures of collective operations: time by size with its interval, against MPI's, and latency and bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from fairlap.printed_document import PrintedDocument
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.estimates import inverse, over_processes
from fairlap.scenarios.collectives.collective_messages import COPY
from fairlap.scenarios.collectives.race.collectives_run import MEMORY, CollectivesRun, Trial

REFERENCE = "mpi"
_LARGEST_MISS = 0.5
_SEEN = 0.01  # of a time
_LOWEST_LOG, _HIGHEST_LOG = -25.0, 40.0  # of nanoseconds, far beyond what can be measured


class CollectiveRow(msgspec.Struct, frozen=True):
    contestant: str
    version: str
    operation: str
    bytes: int  # that each rank gives
    time_ns: Estimate | None  # over processes; of the slowest rank
    bytes_per_s: Estimate | None  # of what each rank gives
    times_mpi: Estimate | None  # over blocks: its time divided by that of mpi in the same block
    absent: str = ""  # why there is no time


class CollectiveFit(msgspec.Struct, frozen=True):
    """Time = latency + bytes / bandwidth, fitted to the times of each block."""

    contestant: str
    operation: str
    latency_ns: Estimate | None  # None where it is too short to be seen beside the smallest array
    bytes_per_s: Estimate | None  # None where the largest array takes no longer
    largest_miss: float  # of the median times, relative to the model

    @property
    def holds(self) -> bool:
        """Frameworks change their algorithm with the size, and caches end."""
        return self.largest_miss <= _LARGEST_MISS


class CollectivesResult(PrintedDocument, frozen=True, tag="fairlap.collectives/1"):
    ranks: int
    threads: int
    blocks: int
    rows: tuple[CollectiveRow, ...]
    fits: tuple[CollectiveFit, ...]
    exchange: Mapping[str, str]
    failures: Mapping[str, str]


def result_of(run: CollectivesRun) -> CollectivesResult:
    by_cell: dict[tuple[str, str, int], list[Trial]] = {}
    for trial in run.trials:
        by_cell.setdefault((trial.operation, trial.contestant, trial.bytes), []).append(trial)
    operations: list[str] = [*run.plan.operations, COPY]
    in_order = sorted(by_cell, key=lambda cell: (operations.index(cell[0]), cell[2], cell[1]))
    rows = tuple(_row(run, by_cell, cell) for cell in in_order)
    pairs = dict.fromkeys((operation, name) for operation, name, _ in in_order)
    fits = [_fit(run, by_cell, operation, name) for operation, name in pairs]
    plan = run.plan
    return CollectivesResult(
        plan.ranks,
        plan.threads,
        plan.blocks,
        rows,
        tuple(fit for fit in fits if fit is not None),
        run.exchange,
        run.failures,
    )


def _row(
    run: CollectivesRun, by_cell: Mapping[tuple[str, str, int], list[Trial]], cell: tuple[str, str, int]
) -> CollectiveRow:
    operation, name, size = cell
    trials = by_cell[cell]
    version = "" if name == MEMORY else run.versions.get(name, "")
    absent = next((trial.wrong or trial.why for trial in trials if trial.wrong or trial.why), "")
    if absent:
        return CollectiveRow(name, version, operation, size, None, None, None, absent)
    time_ns = over_processes([trial.median_ns for trial in trials if trial.median_ns is not None])
    reference = {trial.block: trial.median_ns for trial in by_cell.get((operation, REFERENCE, size), [])}
    ratios = [
        trial.median_ns / of_mpi
        for trial in trials
        if name != REFERENCE and trial.median_ns and (of_mpi := reference.get(trial.block))
    ]
    return CollectiveRow(
        name,
        version,
        operation,
        size,
        time_ns,
        inverse(time_ns, 1e9 * size),
        over_processes(ratios) if ratios else None,
    )


def _fit(
    run: CollectivesRun, by_cell: Mapping[tuple[str, str, int], list[Trial]], operation: str, name: str
) -> CollectiveFit | None:
    """None with fewer than two sizes."""
    times: dict[int, dict[int, float]] = {}
    for size in run.plan.sizes:
        for trial in by_cell.get((operation, name, size), []):
            if trial.median_ns is not None:
                times.setdefault(trial.block, {})[size] = trial.median_ns
    whole = [of_block for of_block in times.values() if len(of_block) == len(run.plan.sizes)]
    if not whole or len(run.plan.sizes) < 2:
        return None
    fitted = [latency_and_slope(list(each), list(each.values())) for each in whole]
    latency = over_processes([each[0] for each in fitted])
    bandwidth = over_processes([1e9 / each[1] for each in fitted])
    models = {size: latency.value + 1e9 * size / bandwidth.value for size in run.plan.sizes}
    medians = {size: float(np.median([each[size] for each in whole])) for size in run.plan.sizes}
    miss = max(abs(medians[size] / models[size] - 1) for size in models)
    smallest, largest = min(models), max(models)
    return CollectiveFit(
        name,
        operation,
        latency if latency.value > _SEEN * models[smallest] else None,
        bandwidth if models[largest] - latency.value > _SEEN * models[largest] else None,
        miss,
    )


def latency_and_slope(sizes: Sequence[int], times_ns: Sequence[float]) -> tuple[float, float]:
    """Fit the latency in ns and the slope in ns for a byte.

    The ratios of times to the model are what counts: otherwise the largest size would decide alone.
    """
    from scipy.optimize import least_squares  # type: ignore[import-untyped]

    size, log_times = np.asarray(sizes, dtype=float), np.log(times_ns)

    def misses(logs: Any) -> Any:
        return np.log(np.exp(logs[0]) + np.exp(logs[1]) * size) - log_times

    begin = [float(log_times.min()), float(log_times.max() - np.log(size.max()))]
    found = least_squares(misses, begin, bounds=([_LOWEST_LOG] * 2, [_HIGHEST_LOG] * 2)).x
    return float(np.exp(found[0])), float(np.exp(found[1]))
