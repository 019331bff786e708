"""What the native sampler's readings show besides energy: the peak power of a sensor, and how busy a device was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SHORTEST_STEP_NS = 50_000_000  # counters step in milliseconds: over less, a step is mostly rounding


def readings_of(
    readings: Any, source: int, field: int, begin_ns: int, end_ns: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Select times and values of one field that were read within the region, without failed readings."""
    import numpy as np

    rows = np.asarray(readings)
    chosen = (rows["source"] == source) & (rows["field"] == field) & (rows["state"] == 0)
    rows = rows[chosen & (rows["time_ns"] >= begin_ns) & (rows["time_ns"] <= end_ns)]
    return rows["time_ns"], rows["value"]


def peak_power_w(
    times_ns: npt.NDArray[np.int64], values: npt.NDArray[np.float64], *, counter: bool, wraps_at: float = 0.0
) -> float | None:
    """Find the highest reading, or a joule counter's steepest rise over at least 50 ms. None with too few."""
    if not counter:
        return float(values.max()) if values.size else None
    steepest: float | None = None
    first = 0
    for place in range(1, len(values)):
        while times_ns[place] - times_ns[first + 1] >= _SHORTEST_STEP_NS:
            first += 1
        passed_ns = int(times_ns[place] - times_ns[first])
        if passed_ns < _SHORTEST_STEP_NS:
            continue
        joules = float(values[place] - values[first])
        if joules < 0:
            joules += wraps_at
        watts = joules / (passed_ns / 1e9)
        steepest = watts if steepest is None else max(steepest, watts)
    return steepest
