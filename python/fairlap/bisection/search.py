"""The search for the step: what to race next, and when to stop. It runs nothing, so a simulation can drive it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairlap.bisection.next_race import Costs, blocks_for, next_position
from fairlap.bisection.posterior import Posterior, groups_of, posterior_of
from fairlap.bisection.readings import TREE_FLOOR, Reading, levels_of

MOST_RACES = 60


@dataclass(frozen=True)
class RaceOf:
    """Race this commit against the good end next."""

    position: int
    blocks: int


@dataclass(frozen=True)
class Ended:
    """``suspects`` hold the step with the probability; one of them where it is found."""

    suspects: range
    probability: float
    reason: Literal["sure", "nothing_to_learn", "races_spent"]


@dataclass(frozen=True)
class Search:
    """Commits 1 to ``last``, the bad end, of which the readings have at least one race."""

    last: int
    sure: float
    floor: float = TREE_FLOOR
    blocks: int | None = None  # of each race; as many as tell the levels apart by default
    most_races: int = MOST_RACES

    def next(self, readings: Sequence[Reading], unfit: Collection[int], costs: Costs | None = None) -> RaceOf | Ended:
        """Continue after these races; ``unfit`` are the commits that cannot be raced."""
        levels = levels_of(readings)
        posterior = posterior_of(levels, self.last, self.floor)
        suspects, probability = _likeliest(posterior, unfit)
        unraced = [each for each in (suspects.start - 1, suspects[-1]) if each and each not in levels.by_position]
        if probability >= self.sure and not unraced:
            return Ended(suspects, probability, "sure")
        if len(readings) >= self.most_races:
            return Ended(_credible(posterior, unfit, self.sure), self.sure, "races_spent")
        blocks = self.blocks or blocks_for(posterior.step, levels.block_variance)
        if probability >= self.sure:  # by the number of commits alone, as where many cannot be raced
            return RaceOf(unraced[0], blocks)
        position = next_position(posterior, levels, blocks, unfit, costs, self.floor)
        if position is None:
            return Ended(_credible(posterior, unfit, self.sure), self.sure, "nothing_to_learn")
        return RaceOf(position, blocks)

    def likeliest(self, readings: Sequence[Reading], unfit: Collection[int]) -> tuple[range, float]:
        """Return the likeliest commit, or commits that no race tells apart, with the probability."""
        return _likeliest(posterior_of(levels_of(readings), self.last, self.floor), unfit)


def _likeliest(posterior: Posterior, unfit: Collection[int]) -> tuple[range, float]:
    at_step = posterior.at_step
    groups = groups_of(at_step.size, unfit)
    chances = [float(at_step[group.start - 1 : group.stop - 1].sum()) for group in groups]
    best = int(np.argmax(chances))
    return groups[best], chances[best]


def _credible(posterior: Posterior, unfit: Collection[int], sure: float) -> range:
    """Return the shortest run of groups that holds the step with the probability that was asked for."""
    last = posterior.at_step.size
    sums = np.concatenate([[0.0], np.cumsum(posterior.at_step)])
    groups = groups_of(last, unfit)
    starts, stops = (np.array([getattr(each, end) for each in groups]) for end in ("start", "stop"))
    needed = np.searchsorted(sums[stops - 1], sums[starts - 1] + sure - 1e-12)
    runs = [range(start, stops[end]) for start, end in zip(starts, needed, strict=True) if end < len(groups)]
    return min(runs, key=len, default=range(1, last + 1))
