"""Wilcoxon's signed-rank test, the Hodges-Lehmann centre, and the interval that is the test turned around.

All three read one sorted array, the Walsh averages: the means of every two differences, each also with
itself (Wilcoxon 1945; Hodges and Lehmann 1963; Tukey). The test counts how many are beyond zero, the
interval cuts as many from both ends as the test tolerates, so the two agree at every level.

Assumed: each difference is as likely to have either sign if the centre is zero, given its size. The random
order inside each block grants that; neither normality nor independence of the noise is needed.

Ties and zeros. Averages that are exactly zero count against the hypothesis from both sides. That is the
limit of breaking ties by an infinitesimal symmetric noise in the least favourable way, so the level holds
exactly and the closed interval covers at least as often as stated; a clock with coarse ticks costs some
power and never a false verdict. Dropping zeros, or midranks under the untied distribution, grant neither.

Every function works on the last axis, so thousands of experiments can be computed in one call.

The sign test's interval for a median is wider and assumes even less: no symmetry of the differences under
inequality. Where it and the signed-rank interval disagree about the side of zero, the differences are skewed and the
reader should know.

Equivalence is shown by two one-sided tests of whether the centre is inside the margin on both sides (Schuirmann). Each
side is tested at the full level, which is the same as asking whether the interval of confidence 1 - 2 x level is
strictly inside the margin. A difference that was merely not found is not equivalence.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np

from fairlap.verdict.blocks import Counts, Floats, require_between


def cut_from_each_end(n: int, level: float) -> int:
    """How many ordered values the exact sign test leaves outside at each end; 0 if it can exclude none."""
    below = 0
    cut = 0
    for k in range(n // 2):
        below += comb(n, k)
        if below / 2**n > level / 2:
            break
        cut = k + 1
    return cut


def sign_interval(differences: Floats, level: float) -> tuple[float, float]:
    """Find the order statistics that hold the median with at least the confidence 1 - level."""
    ordered = np.sort(differences)
    cut = cut_from_each_end(ordered.size, level)
    if cut == 0:
        return -np.inf, np.inf
    return float(ordered[cut - 1]), float(ordered[-cut])


# Logarithms of times near 1e10 ns differ by rounding of at most 4e-15; no clock resolves a ratio of 1e-12.
ROUNDING = 1e-12


@lru_cache(maxsize=256)
def null_cdf(n: int) -> Floats:
    """P(T <= t) for t = 0 .. n(n+1)/2, where T is the signed-rank sum of n fair coins.

    Rank r joins the sum with probability one half; the convolution is exact in binary floating point for
    the sizes that matter and cannot overflow for the others.
    """
    chances: Floats = np.ones(1)
    for rank in range(1, n + 1):
        with_rank = np.zeros(chances.size + rank)
        with_rank[: chances.size] += chances / 2
        with_rank[rank:] += chances / 2
        chances = with_rank
    cdf: Floats = np.cumsum(chances)
    cdf.setflags(write=False)
    return cdf


@lru_cache(maxsize=256)
def _pairs_with_self(n: int) -> tuple[Counts, Counts]:
    first, second = np.triu_indices(n)
    return first, second


def walsh_averages(differences: Floats) -> Floats:
    """Compute the n(n+1)/2 sorted Walsh averages of the last axis."""
    first, second = _pairs_with_self(differences.shape[-1])
    averages: Floats = np.take(differences, first, axis=-1)
    averages += np.take(differences, second, axis=-1)
    averages /= 2
    averages[np.abs(averages) < ROUNDING] = 0.0
    averages.sort(axis=-1)
    return averages


def sample_size(walsh: Floats) -> int:
    """How many differences the Walsh averages came from."""
    return int((np.sqrt(8 * walsh.shape[-1] + 1) - 1) / 2 + 0.5)


def centre(walsh: Floats) -> Floats:
    """Compute the Hodges-Lehmann estimate: the median of the Walsh averages, which estimates a pseudomedian."""
    middle = walsh.shape[-1] // 2
    if walsh.shape[-1] % 2:
        odd: Floats = walsh[..., middle]
        return odd
    even: Floats = (walsh[..., middle - 1] + walsh[..., middle]) / 2
    return even


def p_above(walsh: Floats, threshold: float = 0.0) -> Floats:
    """One-sided p value for "the centre is above the threshold"."""
    against = np.count_nonzero(walsh <= threshold, axis=-1)
    p: Floats = null_cdf(sample_size(walsh))[against]
    return p


def p_below(walsh: Floats, threshold: float = 0.0) -> Floats:
    """One-sided p value for "the centre is below the threshold"."""
    against = np.count_nonzero(walsh >= threshold, axis=-1)
    p: Floats = null_cdf(sample_size(walsh))[against]
    return p


def p_two_sided(walsh: Floats) -> Floats:
    """Two-sided p value for "the centre is not zero"."""
    p: Floats = np.minimum(1.0, 2 * np.minimum(p_above(walsh), p_below(walsh)))
    return p


def interval(walsh: Floats, levels: Floats | float) -> tuple[Floats, Floats]:
    """Compute the closed interval of every centre that the two-sided test at this level does not reject.

    Where the sample is too small to reject anything at the level, the interval is unbounded.
    """
    n = sample_size(walsh)
    tolerated = np.searchsorted(null_cdf(n), np.asarray(levels) / 2, side="right")
    cut = np.broadcast_to(tolerated, walsh.shape[:-1])
    bounded = cut > 0
    at = np.where(bounded, cut - 1, 0)[..., None]
    low = np.take_along_axis(walsh, at, axis=-1)[..., 0]
    high = np.take_along_axis(walsh, walsh.shape[-1] - 1 - at, axis=-1)[..., 0]
    return np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)


def blocks_to_reach(level: float) -> int:
    """Find the fewest blocks n whose smallest two-sided p value, 2 to the power 1 - n, is within the level."""
    n = 1
    while 2.0 ** (1 - n) > level:
        n += 1
    return n


def log_margin(margin: float) -> float:
    """Make a margin mean the same from either side: 0.02 reaches from 1/1.02 to 1.02."""
    require_between("margin", margin, 0.0, 1.0)
    return float(np.log1p(margin))


def p_equivalent(walsh: Floats, margin: float) -> Floats:
    """Compute the p value for "the centre is inside the margin": the worse of the two one-sided ones."""
    edge = log_margin(margin)
    p: Floats = np.maximum(p_above(walsh, -edge), p_below(walsh, edge))
    return p


def equivalence_interval(walsh: Floats, levels: Floats | float) -> tuple[Floats, Floats]:
    """Compute the interval that is strictly inside the margin exactly where the two tests show equivalence."""
    return interval(walsh, 2 * np.asarray(levels))
