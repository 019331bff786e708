"""The mean of the middle half of runs, and its interval by a stratified bootstrap, as rliable computes them.

Agarwal and others, Deep reinforcement learning at the edge of the statistical precipice, 2021: a mean depends on the
luckiest seeds, and the median of few of them is noisy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_TRIMMED = 0.25  # at each end, rounded down to whole runs
_FEWEST = 4  # of which the middle half is two
_RESAMPLES = 10_000
_SHARE = 0.95
_SEED = 0  # the same runs always have the same interval

Floats = npt.NDArray[np.float64]


def interquartile_mean(runs: Sequence[float] | Floats) -> tuple[float, float, float]:
    """Compute it of runs, or of a row for each run and a column for each task, which are strata.

    Infinite for runs that did not come to an end, unless fewer than a quarter of all did not. So may be the upper end,
    which it is of fewer than four runs.
    """
    scores = np.asarray(runs, dtype=np.float64)
    scores = scores.reshape(len(scores), -1)
    count, tasks = scores.shape
    if count < _FEWEST:
        return float(_middle(scores.reshape(1, -1))[0]), 0.0, math.inf
    rows = np.random.default_rng(_SEED).integers(0, count, (_RESAMPLES, count, tasks))
    resampled = np.take_along_axis(scores[None], rows, axis=1).reshape(_RESAMPLES, -1)
    tail = (1 - _SHARE) / 2
    low, high = np.quantile(_middle(resampled), (tail, 1 - tail), method="inverted_cdf")
    return float(_middle(scores.reshape(1, -1))[0]), float(low), float(high)


def _middle(rows: Floats) -> Floats:
    """Average each row without its smallest and its largest."""
    cut = int(_TRIMMED * rows.shape[1])
    kept: Floats = np.sort(rows, axis=1)[:, cut : rows.shape[1] - cut]
    averages: Floats = kept.mean(axis=1)
    return averages
