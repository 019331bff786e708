"""Times to an event of which some are only known to be longer, since the run ended before it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def median_time(times: Sequence[float], reached: Sequence[bool]) -> tuple[float, float, float]:
    """Estimate the median by Kaplan and Meier, and its 95 % interval by Brookmeyer and Crowley, log-log limits.

    Infinite where too few have reached it; so may be the upper end.
    """
    from scipy.stats import CensoredData, ecdf  # type: ignore[import-untyped,unused-ignore]

    at = np.asarray(times, dtype=np.float64)
    seen = np.asarray(reached, dtype=bool)
    if not seen.any():
        return math.inf, math.inf, math.inf
    survival = ecdf(CensoredData(uncensored=at[seen], right=at[~seen])).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # there are no limits where none or all have reached it
        limits = survival.confidence_interval(0.95, method="log-log")

    def half_at(shares: npt.NDArray[np.float64]) -> float:
        below = np.flatnonzero(shares <= 0.5)
        return float(survival.quantiles[below[0]]) if below.size else math.inf

    return half_at(survival.probabilities), half_at(limits.low.probabilities), half_at(limits.high.probabilities)
