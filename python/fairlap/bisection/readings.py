"""What the races of commits against the good end have shown: a level for each commit, with its variance.

The variance has two parts. Blocks differ, in each of which both sides run in fresh processes; more blocks average that
out. And a tree differs from another one of the same code, by where its files and its machine code are; that stays in
every block of the tree, so the floor is what no number of races gets below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.exact_tests.signed_rank import centre, walsh_averages

TREE_FLOOR = 0.003
"""Standard deviation between trees of the same code, as a log ratio: an allowance.

Eight copies of a callable differed from a ninth by 1.0 % where the noise of 12 blocks alone explains 1.3 %, so nothing
was seen of it. The simulation of planted steps counts what happens where trees differ by twice as much.
"""
_PRIOR_FREEDOM = 4
"""The pooled variance counts as much in that of one race as so many differences: machines become noisier meanwhile."""


@dataclass(frozen=True)
class Reading:
    """One race of a commit: how much more it took than the good end in each block, as logarithms."""

    position: int  # of the commit, 1 for the first one after the good end
    log_ratios: tuple[float, ...]


@dataclass(frozen=True)
class Level:
    """Of one commit above the good end, from all its races."""

    log_ratio: float
    variance: float  # of blocks; that between trees comes on top
    blocks: int


@dataclass(frozen=True)
class Levels:
    by_position: Mapping[int, Level]
    block_variance: float  # that a block of a future race is expected to have


def levels_of(readings: Sequence[Reading]) -> Levels:
    """Combine the races of each commit, weighted by how noisy each was."""
    squares = [_sum_of_squares(each.log_ratios) for each in readings]
    freedom = [len(each.log_ratios) - 1 for each in readings]
    total = sum(freedom)
    pooled = sum(squares) / total if total else math.inf
    precisions: dict[int, float] = {}
    weighted: dict[int, float] = {}
    blocks: dict[int, int] = {}
    for each, own_squares, own_freedom in zip(readings, squares, freedom, strict=True):
        of_block = (_PRIOR_FREEDOM * pooled + own_squares) / (_PRIOR_FREEDOM + own_freedom)
        count = len(each.log_ratios)
        precision = count / max(of_block * _widening(total), _LEAST_VARIANCE)
        place = each.position
        precisions[place] = precisions.get(place, 0.0) + precision
        weighted[place] = weighted.get(place, 0.0) + precision * centre_of(each.log_ratios)
        blocks[place] = blocks.get(place, 0) + count
    levels = {
        place: Level(weighted[place] / precision, 1 / precision, blocks[place])
        for place, precision in precisions.items()
    }
    return Levels(levels, max(pooled * _widening(total), _LEAST_VARIANCE))


_LEAST_VARIANCE = 1e-10  # of peaks of memory, which may be the same in every block


def centre_of(log_ratios: Sequence[float]) -> float:
    """Take the Hodges-Lehmann centre, which an episode of noise in one block moves little."""
    return float(centre(walsh_averages(np.array(log_ratios))))


def _sum_of_squares(log_ratios: Sequence[float]) -> float:
    values = np.array(log_ratios)
    return float(((values - values.mean()) ** 2).sum())


def _widening(freedom: int) -> float:
    """Widen the normal distribution to Student's, where the variance comes from few differences."""
    return freedom / (freedom - 2) if freedom > 2 else 3.0
