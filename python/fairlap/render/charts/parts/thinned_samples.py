"""Raw samples reduced to as many points as a chart needs, so that a page stays small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.results.results import Results
from fairlap.results.work_result import ContestantResult, WorkResult
from fairlap.scenarios.process_result import ProcessResult

_MOST_PROCESSES_OVER_TIME = 6  # of each contestant; more lines cannot be distinguished
_POINTS_OF_A_CURVE = 160
_POINTS_OVER_TIME = 150
_MOST_POINTS = 120_000  # in the whole page
_TAIL = 0.999

Record = dict[str, Any]


def curves_of_samples(shown: Results) -> Iterator[Record]:
    """Compute the curve over all steady samples of the processes that count, to the one in a thousand."""
    rows = list(shown.every_row())
    points = min(_POINTS_OF_A_CURVE, max(20, _MOST_POINTS // max(1, len(rows))))
    shares = np.concatenate([np.linspace(0, 0.95, points * 3 // 4), np.linspace(0.955, _TAIL, points // 4)])
    for work_result, result, _ in rows:
        sampled = _sampled(shown, work_result, result)
        steady = [found[min(_steady_from(process), found.size - 1) :] for process, found in sampled]
        if steady:
            values = np.quantile(np.concatenate(steady), shares)
            for share, value in zip(shares, values, strict=True):
                yield _key(work_result, result) | {"ns": float(value), "share": float(share)}


def samples_over_time(shown: Results) -> Iterator[Record]:
    """Medians of equal stretches, so that no stretch is skipped; the sample from which on it was steady is marked."""
    drawn = list(_drawn(shown))
    points = min(_POINTS_OVER_TIME, max(10, _MOST_POINTS // max(1, len(drawn))))
    for work_result, result, process, found in drawn:
        edges = np.unique(np.linspace(0, found.size, min(points, found.size) + 1).astype(int))
        for begin, end in pairwise(edges.tolist()):
            value = float(np.median(found[begin:end]))
            yield _key(work_result, result) | {
                "block": process.block,
                "sample": begin,
                "ns": value,
                "steady": False,
            }
        begin = min(_steady_from(process), found.size - 1)
        yield _key(work_result, result) | {
            "block": process.block,
            "sample": begin,
            "ns": float(found[begin]),
            "steady": True,
        }


def _drawn(shown: Results) -> Iterator[tuple[WorkResult, ContestantResult, ProcessResult, npt.NDArray[Any]]]:
    for work_result, result, _ in shown.every_row():
        for process, found in _sampled(shown, work_result, result)[:_MOST_PROCESSES_OVER_TIME]:
            yield work_result, result, process, found


def _sampled(
    shown: Results, work_result: WorkResult, result: ContestantResult
) -> list[tuple[ProcessResult, npt.NDArray[Any]]]:
    """Select processes of blocks that count, where there are such, with samples of their first quantity."""
    if shown.samples is None:
        return []
    kept = set(work_result.blocks.kept) or {process.block for process in result.processes}
    found_samples = []
    for process in result.finished:
        if process.block in kept:
            found = shown.samples(process.block, process.contestant).get(next(iter(process.timings)))
            if found is not None and found.size:
                found_samples.append((process, found))
    return found_samples


def _steady_from(process: ProcessResult) -> int:
    return process.headline.steady_from


def _key(work_result: WorkResult, result: ContestantResult) -> Record:
    return {
        "work_id": work_result.work.id,
        "conditions": work_result.conditions,
        "contestant": result.contestant,
    }
