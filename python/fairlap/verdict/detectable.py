"""The smallest effect a run could have shown, from the noise of that run alone.

Given the sizes of the residuals, the test's outcome depends on their signs only. Drawing the signs anew
asks: how large must an effect be so that the lower end of the interval clears zero? That is the upper end
of the interval of the redrawn residuals, and its distribution over the draws is the answer. Nothing is
assumed about the shape of the noise, which matters: for two modes a figure taken from the standard
deviation, or from the half-width, promises effects that are then found in 40 to 70 % of runs.

The aim is that a fresh run of the same kind finds the declared effect in at least 80 % of tries. One run
knows its own spread only roughly, so the 90 % point of the draws is declared and the residuals are widened
by sqrt(n / (n-1)); experiment 5 of the trust suite measures what that gives. With fewer than ten blocks and
heavy tails it falls a little short of 80 %.
"""

from functools import lru_cache

import numpy as np

from . import signed_rank
from .arrays import Floats

_SIGN_DRAWS = 40
_DECLARED_POINT = 0.9


@lru_cache(maxsize=64)
def _drawn_signs(n: int) -> Floats:
    """A fixed set of sign vectors per sample size, so that the same figures always give the same answer."""
    signs: Floats = np.random.default_rng(n).choice([-1.0, 1.0], size=(_SIGN_DRAWS, n))
    return signs


def detectable_log_effect(differences: Floats, centres: Floats, levels: Floats | float) -> Floats:
    """The smallest shift of the centre that would be shown at this level; infinite if none could be.

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
    """The smallest difference other than zero, where some are exactly zero; else the clock shows no tick.

    With ticks as wide as the noise, an effect has to carry the readings half a tick further before ties,
    which count against it, become differences.
    """
    zero = sizes < signed_rank.ROUNDING
    smallest = np.where(zero, np.inf, sizes).min(axis=-1)
    tick: Floats = np.where(zero.any(axis=-1) & np.isfinite(smallest), smallest, 0.0)
    return tick
