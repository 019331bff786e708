"""A one-sided test of differences that may be looked at after every block, at any level, however small.

The random order inside each block makes the sign of a difference a fair coin, given its size, where the centre is at
the threshold. So each block multiplies a bet by exp(x) / cosh(x), whose mean is 1 over the two signs; x grows with the
difference, at some rate. The mean of the bets at several rates starts at 1 and exceeds 1 / level at any time with a
chance of at most the level (Ville 1939): the race may look after each block and stop when it likes. A bet is the
likelihood ratio of signs given sizes for normal noise; x is capped, so that one wild block cannot ruin it.

A race that ends for another reason, its budget or its last block, has not looked at a level: half of it is kept for
one signed-rank test at that end, which finds smaller effects in the same blocks. Both halves add up to the level. Both
tests can only fall as the threshold rises, so the largest threshold that is shown to be exceeded is the end of an
interval, and the two agree.

Where the centre is below the threshold, every bet is at most what it is with the threshold at the centre. So the level
holds there too, provided that noise is symmetric about the centre, as for the signed-rank interval.
"""

from __future__ import annotations

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.exact_tests import signed_rank

# Twice the rate is effect / spread^2 of the normal noise that it suits best: 75 for 3 % amid 2 %.
_RATES = np.geomspace(1.0, 10_000.0, 13)
# Simulated with 2 and 4 % of normal, heavy-tailed and bimodal noise: 1.0 to 1.5 need the fewest blocks.
_CAP = 1.2
_HALVINGS = 60


def log_bets(differences: Floats, threshold: float = 0.0) -> Floats:
    """Compute the logarithm of the mean bet that the centre is above the threshold, after each block of the last axis.

    Ties with the threshold count against it.
    """
    above = differences - threshold
    above = np.where(np.abs(above) < signed_rank.ROUNDING, 0.0, above)
    x = np.clip(above[..., None, :] * _RATES[:, None], -_CAP, _CAP)
    logs = np.cumsum(x - np.log(np.cosh(x)), axis=-1)
    found: Floats = np.logaddexp.reduce(logs, axis=-2) - np.log(_RATES.size)
    return found


def is_shown_above(differences: Floats, threshold: float, level: float, *, ended: bool) -> bool:
    """Whether the centre is shown to be above the threshold, by a bet so far or, at the end, by the signed ranks."""
    if differences.size == 0:
        return False
    if largest_log_bet(differences, threshold) >= np.log(2 / level):
        return True
    return ended and p_at_end(differences, threshold) <= level / 2


def largest_log_bet(differences: Floats, threshold: float) -> float:
    """Compute the logarithm of the largest bet so far."""
    return float(log_bets(differences, threshold).max())


def p_at_end(differences: Floats, threshold: float) -> float:
    """Compute the one-sided p value of the signed ranks, for a race that ended blind to its signs."""
    return float(signed_rank.p_above(signed_rank.walsh_averages(differences), threshold))


def lower_end(differences: Floats, level: float, *, ended: bool) -> float:
    """Find the largest threshold that the centre is shown to be above; minus infinity where there is none."""
    if differences.size == 0:
        return -np.inf
    high = float(differences.max())
    low = float(differences.min() - 2 * _CAP / _RATES[0])  # every block bets as much as it may
    if not is_shown_above(differences, low, level, ended=ended):
        return -np.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_shown_above(differences, middle, level, ended=ended):
            low = middle
        else:
            high = middle
    return low


def fewest_blocks(level: float, *, ended: bool) -> int:
    """Find the fewest blocks, all on one side and far from the threshold, with which anything can be shown."""
    by_bets = int(np.ceil(np.log(2 / level) / (_CAP - np.log(np.cosh(_CAP)))))
    return min(by_bets, int(np.ceil(np.log2(2 / level)))) if ended else by_bets
