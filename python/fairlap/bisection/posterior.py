"""Where the step to the bad level is: the probability of each commit, given all races so far.

The hypotheses: the level changes once, at commit k, or twice, at m and at k, with any level between. The step is where
the level of the bad end is about reached, or exceeded: k where the level between is clearly below it, else m. So
neither a speed-up on the way nor a smaller step before counts as the step. No level is known exactly: the
tree of the good end, with which all are compared, has an effect as any tree has, and the other levels come from the
races themselves. All are integrated out, in closed form since readings are normal.

Noisy bisection is an old problem: Horstein (1963), Burnashev and Zigangirov (1974), Waeber and others (2013).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.bisection.readings import TREE_FLOOR, Levels

Floats = npt.NDArray[np.float64]
_TWO_CHANGES = 0.2
"""How likely the level changes twice, before anything is raced."""
_LEVELS_WITHIN = 4.0
"""Levels between are as likely anywhere within so many times the difference of the ends."""
_CLEARLY_BELOW = 0.3  # of the difference of the ends
_LEAST_SHARE = 0.1  # of the difference of the ends, by which the step is raced at least


@dataclass(frozen=True)
class Posterior:
    """``at_step[k - 1]`` is the probability that commit k is the step."""

    at_step: Floats
    step: float  # how much the level changes there, as a log ratio

    @property
    def reached(self) -> Floats:
        """The probability that the step is at a commit or before it."""
        return np.cumsum(self.at_step)


def posterior_of(levels: Levels, last: int, floor: float = TREE_FLOOR) -> Posterior:
    """Weigh commits 1 to ``last``, of which the last one, the bad end, has been raced.

    Between two raced commits no reading tells one place of a change from another; such commits are a cell.
    """
    raced = sorted(levels.by_position)
    widths = np.diff([0, *raced]).astype(float)
    ends_apart = max(abs(levels.by_position[last].log_ratio), floor)
    sums = _Sums(levels, raced, floor, _CLEARLY_BELOW * ends_apart)
    once = sums.log_good - np.log(last) + sums.log_bad
    between = sums.log_between - np.log(_LEVELS_WITHIN * ends_apart)
    pairs = max(last * (last - 1) / 2, 1.0)
    twice = sums.log_good[:, None] + between + sums.log_bad[None, :] - np.log(pairs)
    top = max(once.max(), twice.max(initial=-np.inf))
    of_once = (1 - _TWO_CHANGES) * np.exp(once - top) * widths
    of_twice = _TWO_CHANGES * np.exp(twice - top) * np.outer(widths, widths)
    below = of_twice * sums.chance_below
    above = of_twice - below
    by_cell = of_once + below.sum(axis=0) + above.sum(axis=1)
    step = (
        (of_once * np.abs(sums.mean_bad - sums.mean_good)).sum()
        + (below * np.abs(sums.mean_bad[None, :] - sums.mean_between)).sum()
        + (above * np.abs(sums.mean_between - sums.mean_good[:, None])).sum()
    ) / by_cell.sum()
    at_step = (by_cell / widths)[np.searchsorted(raced, np.arange(1, last + 1))]
    return Posterior(at_step / at_step.sum(), max(float(step), _LEAST_SHARE * ends_apart))


class _Sums:
    """Marginal likelihoods and means of the levels, by the cell of the change, or of the first and the second one."""

    def __init__(self, levels: Levels, raced: list[int], floor: float, clearly: float) -> None:
        values = np.array([levels.by_position[each].log_ratio for each in raced])
        precision = 1 / (np.array([levels.by_position[each].variance for each in raced]) + floor**2)
        weights, moments, squares = (
            np.concatenate([[0.0], np.cumsum(each)]) for each in (precision, precision * values, precision * values**2)
        )
        count = values.size
        prior = 1 / floor**2
        self.mean_good = moments[:count] / (weights[:count] + prior)
        self.log_good = (
            -(squares[:count] - moments[:count] * self.mean_good) / 2 + np.log(prior / (weights[:count] + prior)) / 2
        )
        of_bad = weights[-1] - weights[:count]
        self.mean_bad = (moments[-1] - moments[:count]) / of_bad
        self.log_bad = _log_of_flat(squares[-1] - squares[:count], moments[-1] - moments[:count], of_bad, self.mean_bad)
        of_between = np.maximum(weights[None, :count] - weights[:count, None], 0.0)
        later = np.triu(np.ones((count, count), dtype=bool), k=1)
        of_between[~later] = 1.0
        own = moments[None, :count] - moments[:count, None]
        self.mean_between = own / of_between
        self.log_between = _log_of_flat(
            squares[None, :count] - squares[:count, None], own, of_between, self.mean_between
        )
        self.log_between[~later] = -np.inf
        self.chance_below = _below(
            self.mean_bad[None, :] - clearly - self.mean_between, 1 / of_between + 1 / of_bad[None, :]
        )


def _log_of_flat(squares: Floats, moments: Floats, weights: Floats, mean: Floats) -> Floats:
    """Integrate readings of one level over all levels, each as likely."""
    found: Floats = -(squares - moments * mean) / 2 + np.log(2 * np.pi / weights) / 2
    return found


def _below(difference: Floats, variance: Floats) -> Floats:
    from scipy.special import ndtr  # type: ignore[import-untyped]

    found: Floats = ndtr(difference / np.sqrt(variance))
    return found


def groups_of(last: int, unfit: Collection[int]) -> list[range]:
    """Group commits that no race tells apart: those that cannot be raced, with the next one that can."""
    found, first = [], 1
    for position in range(1, last + 1):
        if position not in unfit:
            found.append(range(first, position + 1))
            first = position + 1
    return found
