"""Whether numbers may come from a distribution: by its bounds, its moments, its shape and their independence.

Bits are free, so no two libraries draw the same numbers. Each figure is compared with what chance brings: honest
numbers exceed each bound about once in a thousand million draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_DEVIATIONS = 6.1  # two-sided, of a normal distribution: once in 1e9
_KOLMOGOROV = 3.27  # of the largest distance of cumulative shares, times the root of the count: once in 1e9
_FOURTH_OF_NORMAL, _FOURTH_OF_UNIFORM = 3.0, 1.8  # moments, of numbers scaled to a variance of one


def distances(numbers: npt.NDArray[Any], *, uniform: bool) -> Iterator[tuple[str, float, float]]:
    """Give what was measured, how far it is off, and how far it may be. Numbers are uniform from 0 to 1, or normal."""
    from scipy.special import ndtr  # type: ignore[import-untyped,unused-ignore]

    count = len(numbers)
    mean, variance, fourth = (0.5, 1 / 12, _FOURTH_OF_UNIFORM) if uniform else (0.0, 1.0, _FOURTH_OF_NORMAL)
    scaled = (numbers - mean) / math.sqrt(variance)
    by_chance = _DEVIATIONS / math.sqrt(count)
    if uniform:
        yield "share outside of 0 to 1", float(np.mean((numbers < 0) | (numbers > 1))), 0.0
    yield "mean", abs(float(scaled.mean())), by_chance
    yield "variance", abs(float(np.mean(scaled**2)) - 1), by_chance * math.sqrt(fourth - 1)
    ordered = np.sort(numbers)
    shares = ordered if uniform else ndtr(ordered)
    steps = np.arange(count + 1) / count
    largest = max(float((steps[1:] - shares).max()), float((shares - steps[:-1]).max()))
    yield "Kolmogorov-Smirnov distance", largest, _KOLMOGOROV / math.sqrt(count)
    for lag in (1, 2):
        yield f"correlation at lag {lag}", abs(float(np.mean(scaled[lag:] * scaled[:-lag]))), by_chance
    different = len(np.unique(numbers.astype(np.float32)))
    # A float32 generator of 23 bits has 8 million different numbers, so that some of a million are alike by chance.
    expected = 2.0**23 * -math.expm1(-count / 2.0**23)
    yield "numbers too few that differ", max(1 - different / expected, 0.0), 0.05
