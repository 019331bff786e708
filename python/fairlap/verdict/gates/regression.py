"""Two saved runs of the same contestant that were not interleaved, and whether it got slower.

Between two runs the machine may have changed as much as the code, and no test can tell the two apart.
So the answer is widened by an allowance: the drift seen inside the runs themselves, plus what each
difference between their environments is known to be worth. Where the runs did different work, or on different
hardware, there is no answer at all.

The rank-sum test for two samples without blocks, and its interval, through one array of differences.

The same construction as `signed_rank.py`: every difference between the samples is sorted once; the test
counts those beyond zero, the interval cuts from both ends. Ties count against the hypothesis from both
sides. It assumes that the samples are exchangeable under equality, which runs at different times are not;
The interval is therefore widened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from fairlap.verdict.blocks import BadOption, Floats, OneBlock, log_of_positive, require_between
from fairlap.verdict.exact_tests.signed_rank import ROUNDING, log_margin
from fairlap.verdict.warnings import EnvironmentDiffers, NotInterleaved, StatisticalWarning, TooFewBlocks


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


def rank_sum_differences(a: Floats, b: Floats) -> Floats:
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


def rank_sum_interval(every: Floats, m: int, n: int, level: float) -> tuple[float, float]:
    """Find the shifts that the two-sided test at this level does not reject; unbounded if it can reject none."""
    cut = int(np.searchsorted(null_cdf(m, n), level / 2, side="right"))
    if cut == 0:
        return -np.inf, np.inf
    return float(every[cut - 1]), float(every[-cut])


# A difference in one of these means that the two runs did not do the same thing on the same machine.
MUST_AGREE = frozenset(
    {
        "workload",
        "metric",
        "weights hash",
        "inputs hash",
        "precision",
        "threads",
        "batch",
        "cpu model",
        "device",
        "gpu",
        "data seed",
        "quantity",
        "data",
        "pipeline",
    }
)
# What a difference is worth, as a share: published reports put driver and library versions at 5 to 6 %.
WORTH = {"driver": 0.06, "cuda": 0.06, "cudnn": 0.06, "firmware": 0.06, "kernel": 0.03, "governor": 0.1}
WORTH_OF_ANYTHING_ELSE = 0.02


class Change(Enum):
    """What two runs show; the gate's exit codes follow from it."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Regression:
    """The ratio after / before with its widened interval; the figures are None if nothing can be compared."""

    change: Change
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    allowance: float
    warnings: tuple[StatisticalWarning, ...]


def compare_runs(
    before: Sequence[float] | Floats,
    after: Sequence[float] | Floats,
    *,
    environment_before: Mapping[str, str],
    environment_after: Mapping[str, str],
    subject: frozenset[str] = frozenset(),
    alpha: float = 0.05,
    margin: float = 0.02,
    least_allowance: float = 0.01,
) -> Regression:
    """Compare the process figures of two runs, lower being better, each in the order it was taken.

    `subject` names what was changed on purpose, such as the framework's version; a difference there is the
    question and not a disturbance.
    """
    require_between("alpha", alpha, 0.0, 1.0)
    if not 0 <= least_allowance < 1:
        raise BadOption(f"least_allowance must be between 0 and 1 (got {least_allowance})")
    edge = log_margin(margin)
    old, new = log_of_positive(before, "before"), log_of_positive(after, "after")
    if min(old.size, new.size) < 2:
        raise OneBlock(f"{old.size} processes before and {new.size} after; a run needs at least two")
    differing = _differing(environment_before, environment_after, subject)
    forbidding = [difference for difference in differing if difference[0] in MUST_AGREE]
    warnings: list[StatisticalWarning] = [EnvironmentDiffers(*difference) for difference in forbidding or differing]
    if forbidding:
        return Regression(Change.NOT_COMPARABLE, None, None, None, None, 0.0, tuple(warnings))
    allowance = float(np.log1p(least_allowance)) + max(drift_inside(old), drift_inside(new))
    allowance += sum(float(np.log1p(WORTH.get(name, WORTH_OF_ANYTHING_ELSE))) for name, _, _ in differing)
    warnings.append(NotInterleaved(float(np.expm1(allowance))))
    every = rank_sum_differences(new, old)
    low, high = rank_sum_interval(every, new.size, old.size, alpha)
    if not np.isfinite(low):
        warnings.append(TooFewBlocks(min(old.size, new.size), _processes_to_reach(alpha), alpha))
    low, high = low - allowance, high + allowance
    return Regression(
        change=_change(low, high, edge),
        ratio=float(np.exp(np.median(every))),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        p=p_beyond(every, new.size, old.size, allowance),
        allowance=float(np.expm1(allowance)),
        warnings=tuple(warnings),
    )


def drift_inside(log_figures: Floats) -> float:
    """How far the second half of a run is from its first, as a logarithm."""
    half = log_figures.size // 2
    return float(abs(np.median(log_figures[-half:]) - np.median(log_figures[:half])))


def _change(low: float, high: float, edge: float) -> Change:
    if low > 0:
        return Change.SLOWER
    if high < 0:
        return Change.FASTER
    # The full interval is used for equivalence too: without interleaving, the stricter rule is the fairer.
    return Change.EQUIVALENT if -edge < low and high < edge else Change.INCONCLUSIVE


def _differing(
    before: Mapping[str, str], after: Mapping[str, str], subject: frozenset[str]
) -> list[tuple[str, str, str]]:
    names = sorted((set(before) | set(after)) - subject)
    rows = [(name, before.get(name, "not recorded"), after.get(name, "not recorded")) for name in names]
    return [row for row in rows if row[1] != row[2]]


def _processes_to_reach(alpha: float) -> int:
    n = 2
    while 2 * null_cdf(n, n)[0] > alpha:
        n += 1
    return n
