"""What a row is made of: an estimate over processes with its interval, or the reason for its absence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

import numpy as np

from fairlap import verdict
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.work_result import ContestantResult
from fairlap.scenarios.process_result import ProcessResult


@dataclass(frozen=True)
class Cell:
    """The value of one column of a row, or the reason for its absence."""

    value: Any
    absent: str = ""


def cell_or(value: Any, absent: str) -> Cell:
    return Cell(value, "" if value is not None else absent)


def estimate(processes: Sequence[ProcessResult], read: Callable[[ProcessResult], float | None]) -> Estimate | None:
    """Estimate a figure over processes; None when some have no such figure.

    Of several modes none is the figure: the one of a process in the middle represents them, without an interval; it is
    never an average between modes.
    """
    values = [read(process) for process in processes]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    figure = verdict.contestant_figure(np.log(known)) if min(known) > 0 else None
    return (None if figure is None else Estimate.of(figure)) or Estimate(median_low(known))


def times(found: Estimate, factor: float) -> Estimate:
    """In another unit, or at a price."""
    low, high = (None if end is None else end * factor for end in (found.low, found.high))
    return Estimate(found.value * factor, low, high)


def inverse(found: Estimate, numerator: float = 1.0) -> Estimate | None:
    """Divide the numerator by the figure; None for a figure of 0, without an interval where that touches 0."""
    if found.value <= 0:
        return None
    if found.low is None or found.high is None or found.low <= 0:
        return Estimate(numerator / found.value)
    return Estimate(numerator / found.value, numerator / found.high, numerator / found.low)


def absence_reason(result: ContestantResult) -> str:
    """Why there is no estimate; empty when there is one."""
    return "" if result.finished else result.trouble or "no process finished"


def over_processes(values: Sequence[float]) -> Estimate:
    """Their middle, with the interval that takes six."""
    figure = verdict.contestant_figure(np.log(values))
    if figure.value is None or figure.low is None or figure.high is None:
        return Estimate(float(np.median(values)))
    return Estimate.bounded(figure.value, figure.low, figure.high)
