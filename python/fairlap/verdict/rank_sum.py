"""The rank-sum test for two samples without blocks, and its interval, through one array of differences.

The same construction as `signed_rank.py`: every difference between the samples is sorted once; the test
counts those beyond zero, the interval cuts from both ends. Ties count against the hypothesis from both
sides. It assumes that the samples are exchangeable under equality, which runs at different times are not;
`regression.py` therefore widens what it says.
"""

from functools import lru_cache

import numpy as np

from .arrays import Floats
from .signed_rank import ROUNDING


@lru_cache(maxsize=64)
def null_cdf(m: int, n: int) -> Floats:
    """P(U <= u) for u = 0 .. mn under exchangeability.

    The number of arrangements with a given U is the coefficient of a Gaussian binomial, built up by
    multiplying with (1 - q^(n+i)) and dividing by (1 - q^i); Python integers keep it exact.
    """
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    total = sum(ways)
    running, cdf = 0, []
    for count in ways:
        running += count
        cdf.append(running / total)
    return np.array(cdf)


def differences(a: Floats, b: Floats) -> Floats:
    """All sorted differences a - b."""
    every = (a[:, None] - b[None, :]).ravel()
    every[np.abs(every) < ROUNDING] = 0.0
    every.sort()
    return every


def p_beyond(every: Floats, m: int, n: int, allowance: float = 0.0) -> float:
    """Two-sided p value for "the shift is larger than the allowance, in one direction or the other"."""
    cdf = null_cdf(m, n)
    above = cdf[np.count_nonzero(every <= allowance)]
    below = cdf[np.count_nonzero(every >= -allowance)]
    return float(min(1.0, 2 * min(above, below)))


def interval(every: Floats, m: int, n: int, level: float) -> tuple[float, float]:
    """The shifts that the two-sided test at this level does not reject; unbounded if it can reject none."""
    cut = int(np.searchsorted(null_cdf(m, n), level / 2, side="right"))
    if cut == 0:
        return -np.inf, np.inf
    return float(every[cut - 1]), float(every[-cut])
