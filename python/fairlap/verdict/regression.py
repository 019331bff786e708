"""Two saved runs of the same contestant that were not interleaved: did it get slower?

Between two runs the machine may have changed as much as the code, and no test can tell the two apart.
So the answer is widened by an allowance: the drift seen inside the runs themselves, plus what each
difference between their environments is known to be worth. Where the runs did different work, or on different
hardware, there is no answer at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from . import rank_sum
from .arrays import Floats
from .doubts import Doubt, EnvironmentDiffers, NotInterleaved, TooFewBlocks
from .equivalence import log_margin
from .errors import BadOption, OneBlock, require_between
from .positive import log_of_positive

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
    doubts: tuple[Doubt, ...]


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
        raise BadOption(f"least_allowance is {least_allowance}, but it must lie between 0 and 1")
    edge = log_margin(margin)
    old, new = log_of_positive(before, "before"), log_of_positive(after, "after")
    if min(old.size, new.size) < 2:
        raise OneBlock(f"{old.size} processes before and {new.size} after; a run needs at least two")
    differing = _differing(environment_before, environment_after, subject)
    forbidding = [difference for difference in differing if difference[0] in MUST_AGREE]
    doubts: list[Doubt] = [EnvironmentDiffers(*difference) for difference in forbidding or differing]
    if forbidding:
        return Regression(Change.NOT_COMPARABLE, None, None, None, None, 0.0, tuple(doubts))
    allowance = float(np.log1p(least_allowance)) + max(drift_inside(old), drift_inside(new))
    allowance += sum(float(np.log1p(WORTH.get(name, WORTH_OF_ANYTHING_ELSE))) for name, _, _ in differing)
    doubts.append(NotInterleaved(float(np.expm1(allowance))))
    every = rank_sum.differences(new, old)
    low, high = rank_sum.interval(every, new.size, old.size, alpha)
    if not np.isfinite(low):
        doubts.append(TooFewBlocks(min(old.size, new.size), _processes_to_reach(alpha), alpha))
    low, high = low - allowance, high + allowance
    return Regression(
        change=_change(low, high, edge),
        ratio=float(np.exp(np.median(every))),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        p=rank_sum.p_beyond(every, new.size, old.size, allowance),
        allowance=float(np.expm1(allowance)),
        doubts=tuple(doubts),
    )


def drift_inside(log_figures: Floats) -> float:
    """How far the second half of a run lies from its first, as a logarithm."""
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
    while 2 * rank_sum.null_cdf(n, n)[0] > alpha:
        n += 1
    return n
