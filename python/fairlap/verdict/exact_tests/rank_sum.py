"""The interval of the shift between two small independent samples, after Mann and Whitney, and Hodges and Lehmann."""

from __future__ import annotations

import math

import numpy as np

from fairlap.verdict.blocks import Floats


def shift(first: Floats, second: Floats, *, alpha: float = 0.05) -> tuple[float, float, float]:
    """Estimate how far the first is above the second: the median of all differences between them.

    With it comes the closed interval of every shift that the exact two-sided test does not reject. Its ends are
    infinite where too few could reject one.
    """
    differences = np.sort(np.subtract.outer(first, second), axis=None)
    tolerated = int(np.searchsorted(_null_cdf(len(first), len(second)), alpha / 2, side="right"))
    middle = float(np.median(differences))
    if tolerated == 0:
        return middle, -math.inf, math.inf
    return middle, float(differences[tolerated - 1]), float(differences[-tolerated])


def _null_cdf(first: int, second: int) -> Floats:
    """Compute the distribution of the number of pairs in which the first is above, for samples of these sizes.

    It has the coefficients of the Gaussian binomial, the product of (1 - q^(second + i)) / (1 - q^i).
    """
    counts = [1] + [0] * (first * second)  # whole numbers, which stay exact
    for i in range(1, first + 1):
        for power in range(len(counts) - 1, second + i - 1, -1):
            counts[power] -= counts[power - second - i]
        for power in range(i, len(counts)):
            counts[power] += counts[power - i]
    total = math.comb(first + second, first)
    return np.cumsum([count / total for count in counts])
