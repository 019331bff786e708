"""The sign test's interval for a median: wider than the signed-rank one and with even less assumed.

It needs no symmetry of the differences under inequality, so where it and the signed-rank interval
disagree about the side of zero, the differences are skewed and the reader should know.
"""

from math import comb

import numpy as np

from .arrays import Floats


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
    """The order statistics that hold the median with at least the confidence 1 - level."""
    ordered = np.sort(differences)
    cut = cut_from_each_end(ordered.size, level)
    if cut == 0:
        return -np.inf, np.inf
    return float(ordered[cut - 1]), float(ordered[-cut])
