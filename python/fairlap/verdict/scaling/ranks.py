"""What an exchange between ranks adds to a step, and which rank the others wait for, from one figure per block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.exact_tests.signed_rank import sign_interval
from fairlap.verdict.scaling.bounded_fit import Bounded

WORTH_A_WARNING = 0.1
"""Of the time that the other ranks take alone: below it, waiting is what any noise makes."""


@dataclass(frozen=True)
class Straggler:
    rank: int
    excess: Bounded  # how much longer it takes alone than the others, as a share; its interval is for all ranks at once

    @property
    def is_one(self) -> bool:
        return self.excess.value >= WORTH_A_WARNING and self.excess.low > 0


def difference(figures: Floats, *, alpha: float = 0.05) -> Bounded:
    """Take the median over blocks of a figure that may be below 0; infinite ends with too few blocks."""
    low, high = sign_interval(figures, alpha)
    return Bounded(float(np.median(figures)), float(low), float(high))


def slowest_rank(alone_ns: Floats, *, alpha: float = 0.05) -> Straggler:
    """Find the slowest rank; ``alone_ns`` is shaped (blocks, ranks).

    Each rank is compared with the median of the others in every block, and which of them is the slowest was not known
    before, so all share the level.
    """
    logs = np.log(alone_ns)
    ranks = logs.shape[1]
    others = np.stack([np.median(np.delete(logs, rank, axis=1), axis=1) for rank in range(ranks)], axis=1)
    excess = logs - others
    rank = int(np.median(excess, axis=0).argmax())
    found = difference(excess[:, rank], alpha=alpha / ranks)
    return Straggler(rank, Bounded(*(float(np.expm1(each)) for each in (found.value, found.low, found.high))))
