"""Readings of one sensor as a test writes them down, in the form that a sampler collects."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from fairlap.engine._native import ReadingState

MS = 1_000_000
_READING = np.dtype(
    [
        ("time_ns", np.int64),
        ("width_ns", np.int64),
        ("source_time_us", np.int64),
        ("value", np.float64),
        ("source", np.uint32),
        ("field", np.uint32),
        ("state", np.uint32),
        ("code", np.int32),
    ]
)


def sensor_rows(times_ms: npt.ArrayLike, values: npt.ArrayLike) -> npt.NDArray[np.void]:
    rows = np.zeros(np.shape(times_ms), _READING)
    rows["time_ns"] = np.asarray(times_ms) * MS
    rows["value"] = values
    return rows


def with_state(rows: npt.NDArray[np.void], place: int, state: ReadingState) -> npt.NDArray[np.void]:
    """Copy the rows, one of which then has no value."""
    changed = rows.copy()
    changed[place]["state"] = state
    changed[place]["value"] = math.nan
    return changed
