"""What a row is made of: a figure over processes with its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

import numpy as np

from fairlap import verdict
from fairlap.race.process_result import ProcessResult
from fairlap.results.results import ContestantResult
from fairlap.results.row import Estimate


@dataclass(frozen=True)
class Told:
    """A value, or why there is none."""

    value: Any
    why: str = ""


def told_or(value: Any, why: str) -> Told:
    return Told(value, "" if value is not None else why)


def estimate(processes: Sequence[ProcessResult], read: Callable[[ProcessResult], float | None]) -> Estimate | None:
    """Over processes; None when some have no such figure. Of several modes none is the figure: the one of a process in
    the middle stands for them, without an interval, and is never an average between modes."""
    values = [read(process) for process in processes]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    figure = verdict.contestant_figure(np.log(known)) if min(known) > 0 else None
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return Estimate(median_low(known))
    return bounded(figure.value, figure.low, figure.high)


def bounded(value: float, low: float, high: float) -> Estimate:
    """Few processes leave everything possible; from zero to infinity is no interval."""
    return Estimate(value, low, high) if low > 0 and np.isfinite(high) else Estimate(value)


def why_not(result: ContestantResult) -> str:
    """Why there is no figure; empty when there are some."""
    return "" if result.finished else result.trouble or "no process finished"
