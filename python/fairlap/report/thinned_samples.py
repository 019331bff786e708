"""Raw samples as few points as a chart needs: a page must stay small, however long a race ran."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.race.laps import Lap
from fairlap.race.results import Contender
from fairlap.report.shown_run import ShownHeat, ShownRun

_MOST_PROCESSES_OVER_TIME = 6  # of each contestant; more lines cannot be told apart
_POINTS_OF_A_CURVE = 160
_POINTS_OVER_TIME = 150
_MOST_POINTS = 120_000  # in the whole page
_TAIL = 0.999

Record = dict[str, Any]


def curves_of_samples(shown: ShownRun) -> Iterator[Record]:
    """The empirical curve over all steady samples of the processes that count, to the one in a thousand."""
    rows = list(shown.every_row())
    points = min(_POINTS_OF_A_CURVE, max(20, _MOST_POINTS // max(1, len(rows))))
    shares = np.concatenate([np.linspace(0, 0.95, points * 3 // 4), np.linspace(0.955, _TAIL, points // 4)])
    for heat, contender, _ in rows:
        sampled = _sampled(shown, heat, contender)
        steady = [found[min(_steady_from(lap), found.size - 1) :] for lap, found in sampled]
        if steady:
            values = np.quantile(np.concatenate(steady), shares)
            for share, value in zip(shares, values, strict=True):
                yield _key(heat, contender) | {"ns": float(value), "share": float(share)}


def samples_over_time(shown: ShownRun) -> Iterator[Record]:
    """Medians of equal stretches, so that no stretch is skipped; the sample from which on it was steady is marked."""
    drawn = list(_drawn(shown))
    points = min(_POINTS_OVER_TIME, max(10, _MOST_POINTS // max(1, len(drawn))))
    for heat, contender, lap, found in drawn:
        edges = np.unique(np.linspace(0, found.size, min(points, found.size) + 1).astype(int))
        for begin, end in pairwise(edges.tolist()):
            value = float(np.median(found[begin:end]))
            yield _key(heat, contender) | {"block": lap.block, "sample": begin, "ns": value, "steady": False}
        begin = min(_steady_from(lap), found.size - 1)
        yield _key(heat, contender) | {"block": lap.block, "sample": begin, "ns": float(found[begin]), "steady": True}


def _drawn(shown: ShownRun) -> Iterator[tuple[ShownHeat, Contender, Lap, npt.NDArray[Any]]]:
    for heat, contender, _ in shown.every_row():
        for lap, found in _sampled(shown, heat, contender)[:_MOST_PROCESSES_OVER_TIME]:
            yield heat, contender, lap, found


def _sampled(shown: ShownRun, heat: ShownHeat, contender: Contender) -> list[tuple[Lap, npt.NDArray[Any]]]:
    """Processes of blocks that count, where there are such, with samples of their first quantity."""
    if shown.samples is None:
        return []
    kept = set(heat.heat.blocks.kept) or {lap.block for lap in contender.laps}
    told = []
    for lap in contender.finished:
        if lap.block in kept:
            found = shown.samples(lap.block, lap.contestant).get(next(iter(lap.figures)))
            if found is not None and found.size:
                told.append((lap, found))
    return told


def _steady_from(lap: Lap) -> int:
    return next(iter(lap.figures.values())).steady_from


def _key(heat: ShownHeat, contender: Contender) -> Record:
    return {"work": heat.work.label, "conditions": heat.conditions, "contestant": contender.contestant}
