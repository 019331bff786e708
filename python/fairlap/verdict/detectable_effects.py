"""How many blocks an experiment needs, before it is run; and the smallest effect that a finished run could have shown.

The plan assumes a normal model, because it needs some shape: effect and spread of the within-block log ratios, nothing
else. The minimum detectable effect of a finished run comes from the noise of that run alone.

Given the sizes of the residuals, the test's outcome depends on their signs only. Drawing the signs again
asks: how large must an effect be so that the lower end of the interval clears zero? That is the upper end
of the interval of the redrawn residuals, and its distribution over the draws is the answer. Nothing is
assumed about the shape of the noise, which matters: for two modes a figure taken from the standard
deviation, or from the half-width, promises effects that are then found in 40 to 70 % of runs.

The aim is that a fresh run of the same kind finds the declared effect in at least 80 % of tries. One run
knows its own spread only roughly, so the 90 % point of the draws is declared and the residuals are widened
by sqrt(n / (n-1)); experiment 5 of the trust suite measures what that gives. With fewer than ten blocks and
heavy tails it falls a little short of 80 %.
"""

from __future__ import annotations

from functools import lru_cache
from math import erf, exp, pi, sqrt

import numpy as np

from fairlap.verdict.blocks import BadOption, Floats, require_between
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.exact_tests.multiplicity import MOST_CLOSED

_SIGN_DRAWS = 40
_DECLARED_POINT = 0.9


@lru_cache(maxsize=64)
def _drawn_signs(n: int) -> Floats:
    """Draw a fixed set of sign vectors per sample size, so that the same figures always give the same answer."""
    signs: Floats = np.random.default_rng(n).choice([-1.0, 1.0], size=(_SIGN_DRAWS, n))
    return signs


def detectable_log_effect(differences: Floats, centres: Floats, levels: Floats | float) -> Floats:
    """Find the smallest shift of the centre that would be shown at this level; infinite if none could be.

    The last axis holds the blocks. Sorting the sizes makes the answer independent of the order of the
    blocks, and using both ends of each redrawn interval makes it the same from either contestant's side.
    """
    n = differences.shape[-1]
    residuals = np.sort(np.abs(differences - np.asarray(centres)[..., None]), axis=-1) * np.sqrt(n / (n - 1))
    ends = []
    for signs in _drawn_signs(n):
        low, high = signed_rank.interval(signed_rank.walsh_averages(residuals * signs), levels)
        ends += [high, -low]
    # An infinite end cannot be interpolated, and is infinite in every draw alike.
    effect: Floats = np.quantile(np.stack(ends), _DECLARED_POINT, axis=0, method="higher")
    return effect + _tick_of_the_clock(np.abs(differences)) / 2


def _tick_of_the_clock(sizes: Floats) -> Floats:
    """Find the smallest difference other than zero, where some are exactly zero; else the clock shows no tick.

    With ticks as wide as the noise, an effect has to carry the readings half a tick further before ties,
    which count against it, become differences.
    """
    zero = sizes < signed_rank.ROUNDING
    smallest = np.where(zero, np.inf, sizes).min(axis=-1)
    tick: Floats = np.where(zero.any(axis=-1) & np.isfinite(smallest), smallest, 0.0)
    return tick


_MOST_BLOCKS = 500


def _phi(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


@lru_cache(maxsize=1024)
def _chances(effect_over_spread: float) -> tuple[float, float, float, float]:
    """P(X1>0), P(X1+X2>0), P(X1>0 and X1+X2>0), P(X1+X2>0 and X1+X3>0) for normal X around the effect."""
    d = effect_over_spread
    x = np.linspace(d - 8, d + 8, 801)
    weight = np.array([exp(-((v - d) ** 2) / 2) / sqrt(2 * pi) for v in x]) * (x[1] - x[0])
    partner = np.array([_phi(v + d) for v in x])
    positive = x > 0
    return (
        _phi(d),
        _phi(d * sqrt(2)),
        float((weight * partner)[positive].sum()),
        float((weight * partner**2).sum()),
    )


def power(effect_over_spread: float, blocks: int, level: float) -> float:
    """Compute the chance that the signed-rank test shows the effect on its own side.

    The rank sum's exact mean and variance under the alternative (Lehmann 1975), with a normal tail beyond the
    exact critical value.
    """
    n = blocks
    cut = int(np.searchsorted(signed_rank.null_cdf(n), level / 2, side="right"))
    if cut == 0:
        return 0.0
    p1, p2, p3, p4 = _chances(effect_over_spread)
    mean = n * p1 + n * (n - 1) / 2 * p2
    variance = (
        n * p1 * (1 - p1)
        + n * (n - 1) / 2 * p2 * (1 - p2)
        + 2 * n * (n - 1) * (p3 - p1 * p2)
        + n * (n - 1) * (n - 2) * (p4 - p2**2)
    )
    fewest_to_show = n * (n + 1) / 2 - cut + 1
    return _phi((mean - fewest_to_show + 0.5) / sqrt(max(variance, 1e-12)))


def blocks_needed(effect: float, spread: float, *, level: float = 0.05, wanted_power: float = 0.8) -> int:
    """Find the fewest blocks that find a ratio of 1 + effect amid this spread of the log ratios."""
    require_between("level", level, 0.0, 1.0)
    require_between("wanted power", wanted_power, 0.0, 1.0)
    if effect <= 0 or spread <= 0:
        raise BadOption(f"effect is {effect} and spread is {spread}, but both must be above zero")
    relative = float(np.log1p(effect)) / spread
    if power(relative, _MOST_BLOCKS, level) < wanted_power:
        raise BadOption(
            f"an effect of {effect:.3g} amid a spread of {spread:.3g} needs over {_MOST_BLOCKS} blocks; "
            "control the conditions first"
        )
    too_few, enough = signed_rank.blocks_to_reach(level) - 1, _MOST_BLOCKS
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if power(relative, middle, level) < wanted_power:
            too_few = middle
        else:
            enough = middle
    return enough


def blocks_to_claim(tables: int = 1, alpha: float = 0.05, *, contestants: int = 2, interchangeable: bool = True) -> int:
    """Find the fewest blocks with which any difference can be claimed in a run of so many works."""
    by_holm = contestants > MOST_CLOSED or not interchangeable
    pairs = contestants * (contestants - 1) // 2 if by_holm else 1
    return signed_rank.blocks_to_reach(alpha / (max(tables, 1) * pairs))
