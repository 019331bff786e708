"""Least squares whose coefficients are not below 0, for many samples of the blocks at once, and bootstrap intervals.

The percentiles are those that Hesterberg (2015) calls expanded: few blocks make the usual ones too narrow, by the
factor between n and n - 1 in the variance and by the normal distribution in the place of Student's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairlap.verdict.blocks import Floats

RESAMPLES = 2000
_SEED = 20_150_527


@dataclass(frozen=True)
class Bounded:
    """A coefficient, or what follows from several, with its interval over blocks."""

    value: float
    low: float
    high: float


def resampled(blocks: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Which blocks each resample draws, the same ones for the same number of blocks; all of them once come first."""
    drawn = np.random.default_rng(_SEED).integers(blocks, size=(RESAMPLES, blocks))
    return np.vstack([np.arange(blocks), drawn])


def bounded(draws: Floats, blocks: int, *, alpha: float = 0.05) -> Bounded:
    """Of a figure of all blocks, which comes first, and of every resample of them."""
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped,unused-ignore]

    tail = float(ndtr(np.sqrt(blocks / (blocks - 1)) * stdtrit(blocks - 1, alpha / 2)))
    value, others = float(draws[0]), draws[1:]
    low, high = (float(each) for each in np.quantile(others, [tail, 1 - tail]))
    return Bounded(value, min(low, value), max(high, value))


def nonnegative_fit(terms: Floats, values: Floats) -> Floats:
    """Find the terms' coefficients, none below 0, that miss the values by the least sum of squares.

    ``terms`` is shaped (samples, equations, coefficients), ``values`` (samples, equations). Of few coefficients every
    choice of those that are 0 is tried, and the best that is allowed is exact.
    """
    samples, _, count = terms.shape
    sizes = np.sqrt(np.sum(terms**2, axis=1))  # columns of one size keep the normal equations well conditioned
    terms = terms / sizes[:, None, :]
    best = np.zeros((samples, count))
    least = np.sum(values**2, axis=1)
    for size in range(1, count + 1):
        for kept in map(list, combinations(range(count), size)):
            some = terms[:, :, kept]
            products = np.einsum("sec,sed->scd", some, some)
            found = np.linalg.solve(products, np.einsum("sec,se->sc", some, values)[..., None])[..., 0]
            left = np.sum((values - np.einsum("sec,sc->se", some, found)) ** 2, axis=1)
            better = (found >= 0).all(axis=1) & (left < least)
            least = np.where(better, left, least)
            best[better] = 0.0
            best[np.ix_(better, kept)] = found[better]
    fitted: Floats = best / sizes
    return fitted
