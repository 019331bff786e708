"""One ratio over several works: the geometric mean, with an interval that respects the blocks.

Times of different works have no common mean: the longest work would decide it. Ratios have, and of ratios only the
geometric mean gives the same answer whichever contestant is the baseline (Fleming and Wallace, 1986). The two
contestants are compared inside each block, so that what a block does to both cancels; the works weigh the same, and
their errors are independent, which gives the interval of Welch (1947) and Satterthwaite (1946).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import Floats, OneBlock, require_between


@dataclass(frozen=True)
class GeometricMean:
    ratio: float
    low: float
    high: float
    works: int
    blocks: int  # of all works together


def geometric_mean_ratio(log_ratios: Sequence[Floats], *, alpha: float = 0.05) -> GeometricMean:
    """``log_ratios`` has the log ratio in each block, one array for each work."""
    require_between("alpha", alpha, 0.0, 1.0)
    if not log_ratios or min(each.size for each in log_ratios) < 2:
        raise OneBlock("a mean over works needs two blocks at least of every one of them")
    works = len(log_ratios)
    sizes = np.array([each.size for each in log_ratios])
    mean = float(np.mean([each.mean() for each in log_ratios]))
    variances = np.array([each.var(ddof=1) for each in log_ratios]) / sizes / works**2
    half = _half_width(variances, sizes, alpha)
    return GeometricMean(
        float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half)), works, int(sizes.sum())
    )


def _half_width(variances: Floats, sizes: Floats, alpha: float) -> float:
    total = float(variances.sum())
    if total == 0:
        return 0.0
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    shares = variances / total  # squares of the variances themselves may be 0
    freedom = 1 / float((shares**2 / (sizes - 1)).sum())
    return float(stdtrit(freedom, 1 - alpha / 2) * total**0.5)
