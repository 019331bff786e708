"""Which commit to race next, and for how many blocks: what tells most about the step in a second."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fairlap.bisection.posterior import Floats, Posterior
from fairlap.bisection.readings import TREE_FLOOR, Levels

FEWEST_BLOCKS, MOST_BLOCKS = 3, 12
_DEVIATIONS_APART = 3.0
_NODES = 24
_LEAST_BITS = 0.0005
"""A race that is expected to tell less is not worth its time, and the search ends undecided."""


@dataclass(frozen=True)
class Costs:
    """Seconds, as measured so far."""

    block_s: float = 1.0
    tree_s: float = 0.0
    built: Collection[int] = ()


def blocks_for(step: float, block_variance: float) -> int:
    """So many that the two levels are three standard deviations apart, within what a race may have."""
    needed = _DEVIATIONS_APART**2 * block_variance / max(step, 1e-9) ** 2
    return min(max(math.ceil(needed), FEWEST_BLOCKS), MOST_BLOCKS)


def next_position(
    posterior: Posterior,
    levels: Levels,
    blocks: int,
    unfit: Collection[int],
    costs: Costs | None = None,
    floor: float = TREE_FLOOR,
) -> int | None:
    """Choose by information for each second; None where no race tells anything."""
    costs = costs or Costs()
    last = posterior.at_step.size
    bad = levels.by_position[last]
    bits = information_bits(posterior, levels, blocks, floor)
    bits[[each - 1 for each in unfit]] = 0.0
    if bits.max() < _LEAST_BITS:
        return None
    if any(each.blocks > bad.blocks for each in levels.by_position.values()):
        return last  # else its level, by which all others are sorted, is known the least
    seconds = np.full(last, costs.tree_s + blocks * costs.block_s)
    seconds[[each - 1 for each in costs.built]] -= costs.tree_s
    return int(np.argmax(bits * _chances_to_build(last, unfit) / seconds)) + 1


def information_bits(posterior: Posterior, levels: Levels, blocks: int, floor: float = TREE_FLOOR) -> Floats:
    """How much a race of each commit is expected to tell about the place of the step.

    What its earlier races have shown of its tree is known already, so that a commit tells less each time.
    """
    last = posterior.at_step.size
    of_race = levels.block_variance / blocks
    apart = np.full(last, posterior.step)
    variance = np.full(last, floor**2 + of_race)
    for position, level in levels.by_position.items():
        known = floor**2 / (floor**2 + level.variance)
        apart[position - 1] *= 1 - known
        variance[position - 1] = floor**2 * (1 - known) + of_race
    reached = np.clip(posterior.reached, 0.0, 1.0)
    return _bits(reached, apart / np.sqrt(variance))


def _bits(share: Floats, deviations_apart: Floats) -> Floats:
    """Mutual information of a coin with this share of heads and a normal reading whose mean it moves."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    apart = deviations_apart[:, None]
    shifts = {1.0: -apart * nodes - apart**2 / 2, 0.0: apart * nodes - apart**2 / 2}
    found = np.zeros_like(share)
    for heads, log_ratio_of_other in shifts.items():
        own = share if heads else 1 - share
        likelihood = np.exp(np.clip(log_ratio_of_other, -700.0, 700.0))
        of_all = own[:, None] + (1 - own[:, None]) * likelihood
        found -= own * (np.log2(np.maximum(of_all, 1e-300)) * weights).sum(axis=1)
    bits: Floats = np.maximum(found, 0.0)
    return bits


def _chances_to_build(last: int, unfit: Collection[int]) -> Floats:
    """Prefer commits far from those that cannot be raced, which come in runs."""
    if not unfit:
        return np.ones(last)
    distance = np.abs(np.subtract.outer(np.arange(1, last + 1), np.array(sorted(unfit)))).min(axis=1)
    chances: Floats = distance / (distance + 1)
    return chances
