"""Where a series of runs changes its level: PELT (Killick, Fearnhead and Eckley 2012) with a squared cost.

The noise is estimated from the series itself, robustly, and single outliers are pulled in. The penalty is the one of
which docs/explanation/changes-over-time.md reports how often it claims a change where there is none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_RUNS = 8
PENALTY = 15.0  # times the logarithm of the number of runs, as for the samples of a process
LEAST_AFTER = 3
_UNSURE_OF_NOISE = 4.0  # in a series of this many runs the noise counts twice
_FAR = 3.0
_NORMAL_QUARTILES = 1.349


def change_points(
    logs: Floats, penalty: float = PENALTY, least_after: int = LEAST_AFTER, least_noise: float = 0.0
) -> list[int]:
    """Find the places of the first runs after each change; ``least_noise`` is for figures that may repeat exactly."""
    if logs.size < FEWEST_RUNS:
        return []
    noise = max(_noise(logs), least_noise)
    noise = noise or float(np.std(np.diff(logs)))  # most runs may be equal on a coarse clock
    if noise == 0:
        return []
    import ruptures  # type: ignore[import-untyped,unused-ignore]

    signal = _pulled_in(logs / noise).reshape(-1, 1)
    search = ruptures.KernelCPD(kernel="linear", min_size=least_after)  # a linear kernel is the squared cost, in C
    found = search.fit_predict(signal, pen=penalty * float(np.log(logs.size)))
    return [int(place) for place in found[:-1]]


def _noise(logs: Floats) -> float:
    """Estimate the standard deviation within levels, from the quartiles of the steps between runs.

    It is larger where few runs know it badly, since a short series with a noise that is too small has most false
    alarms.
    """
    low, high = np.quantile(np.diff(logs), [0.25, 0.75])
    return float((high - low) / _NORMAL_QUARTILES / np.sqrt(2)) * (1 + _UNSURE_OF_NOISE / logs.size)


def _pulled_in(scaled: Floats) -> Floats:
    """Pull in runs far from the median of the five around them, such as one next to a busy neighbour."""
    window = np.lib.stride_tricks.sliding_window_view(np.pad(scaled, 2, mode="edge"), 5)
    middle = np.median(window, axis=1)
    return np.clip(scaled, middle - _FAR, middle + _FAR)
