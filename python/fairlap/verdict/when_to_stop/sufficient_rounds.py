"""When a block needs fewer rounds than usual: where the spread of rounds hardly widens the verdict's interval.

Where processes take several works, most of what a block of a work costs is its rounds. What they leave uncertain is
averaged over all blocks of the work, so steady rounds can be few. Noisy ones stay as many as usual.

The spread is pooled over the contestants of a block, without their levels. Exchanging two equal contestants in any
block does not change it, so it changes no later block, and the signs remain fair coins (see ``stopping``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.when_to_stop.worthwhile_rounds import SEGMENT, RacedBlock

_SHARE_OF_MARGIN = 0.25  # that the standard error may have which rounds alone leave in a ratio over all blocks
_OF_A_MEDIAN = sqrt(np.pi / 2)  # times that of a mean, for normal noise


def sufficient_rounds(raced: Sequence[RacedBlock], *, usual: int, margin: float, blocks: int) -> int:
    """Choose the rounds of the next of ``blocks``: a segment where that is enough, or else as many as ``usual``."""
    fewest = min(SEGMENT, usual)
    spreads = [spread for each in raced if (spread := spread_of_rounds(each.log_times)) is not None]
    if not spreads or blocks < 1:
        return usual
    error = _OF_A_MEDIAN * sqrt(2 / (fewest * blocks)) * float(np.median(spreads))
    return fewest if error <= _SHARE_OF_MARGIN * margin else usual


def spread_of_rounds(log_times: Floats) -> float | None:
    """Estimate the standard deviation of one contestant's round, without what a whole round has in common.

    None for a single contestant and for a single round.
    """
    contestants, rounds = log_times.shape
    freedom = (contestants - 1) * (rounds - 1)
    if freedom == 0:
        return None
    own = log_times - log_times.mean(axis=0) - log_times.mean(axis=1, keepdims=True) + log_times.mean()
    return sqrt(float((own**2).sum()) / freedom)
