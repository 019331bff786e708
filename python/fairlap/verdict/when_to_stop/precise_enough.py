"""When to stop adding blocks, looking at the size of the spread and never at who leads.

Looking at p after every block and stopping at will turns a 5 % test into one of 24.5 %. This rule
reads each block's figures sorted, so it cannot know which contestant had which, and swapping two equal
contestants cannot change when it stops. The signs it has not seen remain fair coins, and the test keeps
its level exactly.

With two contestants the rule sees |d| only. If they are equal, |d| is folded at zero and its spread is 0.6
of the true one; if they differ clearly, it is the true one. The folded normal distribution gives how much to
widen in between. The widening only decides how long to continue, so the verdict does not rest on it.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import erf, exp, pi, sqrt
from typing import Literal

import numpy as np

from fairlap.verdict.blocks import BadOption, BlockTable, Floats, require_between
from fairlap.verdict.exact_tests import signed_rank


@dataclass(frozen=True)
class StoppingRule:
    """Stop once every pair's interval is about as narrow as +- half_width, given as a share of the ratio."""

    half_width: float = 0.01
    minimum: int = 12
    cap: int = 60
    alpha: float = 0.05

    def __post_init__(self) -> None:
        require_between("half_width", self.half_width, 0.0, 1.0)
        require_between("alpha", self.alpha, 0.0, 1.0)
        if not 2 <= self.minimum <= self.cap:
            raise BadOption(f"minimum {self.minimum} and cap {self.cap}: 2 <= minimum <= cap must hold")


@dataclass(frozen=True)
class StoppingAdvice:
    """The decision after a block."""

    stop: bool
    reason: Literal["below the minimum", "target met", "cap reached", "too wide yet"]
    half_width: float


@lru_cache(maxsize=1)
def folding() -> tuple[Floats, Floats, Floats]:
    """Of a normal before and after folding at zero, by the ratio of its folded mean to its folded spread, which rises.

    That ratio; the true spread over the folded one; the true mean over the true spread.
    """
    ratios: list[float] = []
    widenings: list[float] = []
    shifts = np.linspace(0.0, 4.0, 81)
    for shift in shifts:
        mean = sqrt(2 / pi) * exp(-(shift**2) / 2) + shift * erf(shift / sqrt(2))
        spread = sqrt(1 + shift**2 - mean**2)
        ratios.append(mean / spread)
        widenings.append(1 / spread)
    return np.array(ratios), np.array(widenings), shifts


def blinded_half_width(log_figures: Floats, level: float) -> Floats:
    """Find the widest half-width over all pairs of ranks, for log figures shaped (..., blocks, contestants)."""
    ranked = np.sort(log_figures, axis=-1)
    ratios, widenings, _ = folding()
    widest = np.zeros(log_figures.shape[:-2])
    for lower, upper in combinations(range(ranked.shape[-1]), 2):
        gaps = ranked[..., upper] - ranked[..., lower]
        low, high = signed_rank.interval(signed_rank.walsh_averages(gaps), level)
        spread = np.maximum(gaps.std(axis=-1), signed_rank.ROUNDING)
        widening = np.interp(gaps.mean(axis=-1) / spread, ratios, widenings)
        widest = np.maximum(widest, (high - low) / 2 * widening)
    return widest


def advise(table: BlockTable, rule: StoppingRule) -> StoppingAdvice:
    """Decide whether to stop after the blocks in the table."""
    n, contestants = table.log_figures.shape
    pairs = contestants * (contestants - 1) // 2
    width = float(blinded_half_width(table.log_figures, rule.alpha / pairs))
    if n < rule.minimum:
        return StoppingAdvice(False, "below the minimum", width)
    if width <= float(np.log1p(rule.half_width)):
        return StoppingAdvice(True, "target met", width)
    if n >= rule.cap:
        return StoppingAdvice(True, "cap reached", width)
    return StoppingAdvice(False, "too wide yet", width)
