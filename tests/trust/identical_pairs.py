"""Pairs of identical contestants out of races: how many of them a verdict calls different, and within what interval.

The pairs of a race are not independent: they share its blocks, and pairs with a contestant in common often err
together. So the interval is the exact one of as many independent pairs as these are worth (Korn and Graubard,
Confidence intervals for proportions with small expected number of positive counts, 1998): divided by the design
effect that the races show, and by no less than the one that sharing contestants is bound to have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil

import msgspec
import numpy as np
from fairlap import verdict
from fairlap.verdict import Verdict
from fairlap.verdict.false_positive_rate import false_positives

SHARING = 0.15
"""No less than the correlation of claims about two pairs with a contestant in common, where nothing else is shared:
0.06 with six blocks and exchangeable figures, 0.14 with many blocks and normal ones."""


class RacedPairs(msgspec.Struct, frozen=True):
    """What one race found, and what raced."""

    scenario: str
    on: str
    threads: int
    contestants: int
    blocks: int
    claims: int
    seed: int
    took_s: float

    @property
    def pairs(self) -> int:
        return self.contestants * (self.contestants - 1) // 2


class Rate(msgspec.Struct, frozen=True):
    """Of one scenario, over all of its races."""

    races: int
    pairs: int
    claims: int
    worth: int  # in independent pairs
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.claims / self.pairs

    @property
    def passed(self) -> bool:
        """A rule whose rate is 5 % fails once in a hundred such experiments."""
        return false_positives(round(self.share * self.worth), self.worth).passed


def called_different(table: verdict.BlockTable) -> list[verdict.Comparison]:
    """Of all pairs, each judged as if there were no others."""
    found = []
    for pair in combinations(range(len(table.contestants)), 2):
        names = tuple(table.contestants[place] for place in pair)
        alone = replace(table, contestants=names, log_figures=table.log_figures[:, list(pair)])
        [comparison] = verdict.judge([alone])
        if comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
            found.append(comparison)
    return found


def rate_of(races: Sequence[RacedPairs]) -> Rate:
    pairs, claims = sum(race.pairs for race in races), sum(race.claims for race in races)
    worth = max(1, int(pairs / max(shown_effect(races), bound_effect(races))))
    low, high = _interval(claims / pairs * worth, worth)
    return Rate(len(races), pairs, claims, worth, low, high)


def bound_effect(races: Sequence[RacedPairs]) -> float:
    """Each of k contestants is in k - 1 pairs, so a pair shares one with 2 (k - 2) others."""
    return max(1 + 2 * (race.contestants - 2) * SHARING for race in races)


def shown_effect(races: Sequence[RacedPairs]) -> float:
    """Divide the variance of the claims between races by what independent pairs would have."""
    pairs = np.array([race.pairs for race in races])
    claims = np.array([race.claims for race in races])
    share = claims.sum() / pairs.sum()
    if len(races) < 2 or share in (0.0, 1.0):
        return 1.0
    between = ((claims - share * pairs) ** 2).sum() * len(races) / (len(races) - 1)
    return float(between / (share * (1 - share) * pairs.sum()))


def _interval(claims: float, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's, of a number of claims that need not be whole."""
    from scipy.stats import beta  # type: ignore[import-untyped,unused-ignore]

    low = 0.0 if claims <= 0 else float(beta.ppf(0.025, claims, trials - claims + 1))
    high = 1.0 if ceil(claims) >= trials else float(beta.ppf(0.975, claims + 1, trials - claims))
    return low, high


def as_table(races: Sequence[RacedPairs]) -> str:
    lines = [
        "| scenario | contestant | threads | races | pairs | called different | rate | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for scenario, on, threads in dict.fromkeys((race.scenario, race.on, race.threads) for race in races):
        own = [race for race in races if (race.scenario, race.on, race.threads) == (scenario, on, threads)]
        rate = rate_of(own)
        lines.append(
            f"| {scenario} | {on} | {threads} | {rate.races} | {rate.pairs} | {rate.claims} | {100 * rate.share:.1f} % "
            f"[{100 * rate.low:.1f}, {100 * rate.high:.1f}] | {'' if rate.passed else 'more than 5 % allow'} |"
        )
    return "\n".join(lines)
