"""From the rounds of one block to one figure for each contestant, such that what hit a whole round cancels.

In a round every contestant has one short turn, so a burst of noise that lasts longer than a turn hits several of them.
Each log time is taken as the sum of a level of the block, an effect of the round and an effect of the contestant, found
by Tukey's median polish. For two contestants the difference of their figures is exactly the median over the rounds of
their log ratios. Contestants are treated alike, so equal ones keep the symmetry that the test of the verdict needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlap.verdict.blocks import Floats

EPISODE_S = 0.7
"""The longest in which other programs, or the host of a virtual machine, slowed calls down: 240 rebuilds of a small
network met episodes of 40 to 700 ms."""

_MOST_PASSES = 20
_SETTLED = 1e-12


def block_figures(log_times: Floats) -> Floats:
    """One log figure per contestant, for log times shaped (contestants, rounds)."""
    left = np.array(log_times, dtype=np.float64)
    effects = np.zeros(left.shape[0])
    level = 0.0
    for _ in range(_MOST_PASSES):
        of_rounds = np.median(left, axis=0)
        left -= of_rounds
        level += float(np.median(of_rounds))
        of_contestants = np.median(left, axis=1)
        left -= of_contestants[:, None]
        effects += of_contestants
        if np.abs(of_contestants).max() < _SETTLED:
            break
    figures: Floats = effects + level
    return figures


def halves_of_rounds(rounds: Sequence[float] | Floats) -> Floats:
    """Divide the medians of a process's half rounds by that of all, as logarithms; NaN without rounds."""
    logs: Floats = np.log(np.asarray(rounds, dtype=np.float64))
    if logs.size < 2:
        return np.full(2, np.nan)
    middle = logs.size // 2
    return np.array([np.median(logs[:middle]), np.median(logs[middle:])]) - np.median(logs)
