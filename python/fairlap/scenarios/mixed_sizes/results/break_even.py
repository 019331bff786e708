"""After how many calls over a mix the contestant that needs longer to get ready has made up for it.

Both times are those of the same blocks, so their differences are paired. The number of calls is a ratio of two means
of such differences; its interval is Fieller's, which stays right where the time per call hardly differs.

Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16 (1954).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from fairlap.results.row import Row
from fairlap.scenarios.mixed_sizes.results.column_definitions import ReadyInBlock

FEWEST_BLOCKS = 6  # for an interval, as everywhere
_COVERAGE = 0.95
_S = 1e9


@dataclass(frozen=True)
class BreakEven:
    """``calls`` after which ``later``, which is ready later and quicker per call, has caught up with ``sooner``."""

    later: str
    sooner: str
    calls: float
    low: float | None  # of its interval; None with fewer than six blocks
    high: float | None  # infinite where the time per call may be the same
    blocks: int
    with_empty_caches: float | None = None  # by the first process of each, whose compiler's caches were empty


def break_evens(rows: Sequence[Row]) -> list[BreakEven]:
    """Of every pair of rows of one work in which one is ready later and quicker per call."""
    pairs = (_of_pair(later, sooner) for later, sooner in permutations(rows, 2))
    return [found for found in pairs if found is not None]


def _of_pair(later: Row, sooner: Row) -> BreakEven | None:
    mine, others = ({each.block: each for each in row.mix_by_block} for row in (later, sooner))
    common = [(mine[block], others[block]) for block in sorted(mine.keys() & others.keys())]
    warm = [pair for pair in common if all(each.caches == "warm" for each in pair)]
    used = warm or common
    if not used:
        return None
    longer_s = np.array([slow.ready_s - quick.ready_s for slow, quick in used])
    gained_s = np.array([(quick.call_ns - slow.call_ns) / _S for slow, quick in used])
    if longer_s.mean() <= 0 or gained_s.mean() <= 0:
        return None
    low, high = interval(longer_s, gained_s) if len(used) >= FEWEST_BLOCKS else (None, None)
    if high is not None and not math.isfinite(high):
        return None  # that it is quicker per call is not shown
    return BreakEven(
        later.contestant,
        sooner.contestant,
        float(longer_s.mean() / gained_s.mean()),
        low,
        high,
        len(used),
        _with_empty_caches([pair for pair in common if pair not in used], gained_s),
    )


def _with_empty_caches(pairs: Sequence[tuple[ReadyInBlock, ReadyInBlock]], gained_s: np.ndarray) -> float | None:
    """Take the time per call from the other blocks: no cache changes it."""
    pairs = [pair for pair in pairs if all(each.caches == "cold" for each in pair)]
    if not pairs:
        return None
    longer_s = float(np.mean([slow.ready_s - quick.ready_s for slow, quick in pairs]))
    return longer_s / float(gained_s.mean()) if longer_s > 0 else None


def interval(numerators: np.ndarray, denominators: np.ndarray) -> tuple[float, float]:
    """Fieller's interval of the ratio of two means, of paired values; infinite where the second mean may be 0."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    count = len(numerators)
    quantile = float(stdtrit(count - 1, (1 + _COVERAGE) / 2))
    above, below = float(np.mean(numerators)), float(np.mean(denominators))
    covariance = np.cov(numerators, denominators) / count
    square = quantile**2
    # The ratios r for which |above - r below| is at most quantile times its standard error.
    leading = below**2 - square * covariance[1, 1]
    middle = above * below - square * covariance[0, 1]
    constant = above**2 - square * covariance[0, 0]
    if leading <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(middle**2 - leading * constant, 0.0))
    return max((middle - root) / leading, 0.0), (middle + root) / leading
