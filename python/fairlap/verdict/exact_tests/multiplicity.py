"""Several comparisons at once: how p values are corrected so that any false claim stays as rare as stated.

Differences among up to five contestants: closed testing (Marcus, Peritz and Gabriel 1976). Every way to split the
contestants into groups of equal ones is one hypothesis, with one test. A pair is claimed to differ when each hypothesis
that holds the pair to be equal is rejected, so its adjusted p is the largest of theirs. If some of the contestants are
equal, a false claim needs the rejection of the one hypothesis that is true, which happens in at most alpha of runs,
whatever the dependence between pairs.

A pair alone is tested by the exact signed-rank test. A larger hypothesis is tested by relabelling (Fisher 1935): if
the members of a group are equal, the drawn order makes every assignment of their labels inside a block equally
likely, so labels are drawn again, independently in each group and block, and the statistic of the run is compared
with those of the draws. In each block every pair of a group has a score, its signed rank by size over all blocks
and pairs of the group. The score sum of a pair is divided by the root of its sum of squares, so that a noisy
contestant does not hide what the others show, and the fourth powers are added up over all pairs. The fourth power
finds one clear pair among equal ones nearly as well as the largest would, and does not saturate when all are clear.

With more contestants the hypotheses are too many, and Holm's step-down correction (1979) is used. Equivalences
are always corrected by Holm.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, permutations
from typing import NamedTuple, TypeAlias

import numpy as np

from fairlap.verdict.blocks import Counts, Flags, Floats
from fairlap.verdict.exact_tests.signed_rank import ROUNDING

MOST_CLOSED = 5
"""Contestants; six would have 202 hypotheses, seven 876."""

_DRAWS = 4999  # with the run itself 5,000; a p near 5 % is then known to 0.3 %
_MOST_RELABELLED = 60  # blocks; of more, several are relabelled together, which is as exact
_JUST_BELOW = 1 - 1e-9

Group: TypeAlias = tuple[int, ...]


class Corrected(NamedTuple):
    """Arrays shaped like the p values: shown or not, the level each interval is drawn at, adjusted p."""

    shown: Flags
    levels: Floats
    adjusted: Floats


def correct_differences(log_figures: Floats, p_values: Floats, level: float) -> Corrected:
    """Correct the signed-rank p values of all pairs of one table, in the order of ``np.triu_indices``."""
    if log_figures.shape[1] > MOST_CLOSED:
        return holm(p_values, level)
    adjusted = closed(log_figures, p_values)
    shown = adjusted <= level
    return Corrected(shown, levels_that_agree(p_values, shown, level), adjusted)


def levels_that_agree(p_values: Floats, shown: Flags, level: Floats | float) -> Floats:
    """Choose each test's level, or one just below p where the pair alone would pass and may not be shown."""
    levels: Floats = np.where(~shown & (p_values <= level), p_values * _JUST_BELOW, level)
    return levels


def holm(p_values: Floats, alpha: float) -> Corrected:
    """Correct the last axis for being one family.

    A comparison that passes Bonferroni's bound keeps that level, which gives the widest interval that still
    agrees with the verdict; one that passes only by Holm's step has the level of its step; those not shown
    have the level at which Holm stopped.

    statsmodels gives the same adjusted p values, which a test checks, but not the level that each hypothesis met,
    and an interval drawn at another level could contradict the verdict.
    """
    m = p_values.shape[-1]
    order = np.argsort(p_values, axis=-1, kind="stable")
    ordered = np.take_along_axis(p_values, order, axis=-1)
    steps = alpha / np.arange(m, 0, -1)
    passed = np.logical_and.accumulate(ordered <= steps, axis=-1)
    stopped = np.minimum(passed.sum(axis=-1, keepdims=True), m - 1)
    own = steps[_first_of_equals(ordered)]
    levels = np.where(passed, np.where(ordered <= steps[0], steps[0], own), steps[stopped])
    adjusted = np.minimum(1.0, np.maximum.accumulate(ordered * np.arange(m, 0, -1), axis=-1))
    back = np.argsort(order, axis=-1)
    return Corrected(
        np.take_along_axis(passed, back, axis=-1),
        np.take_along_axis(levels, back, axis=-1),
        np.take_along_axis(adjusted, back, axis=-1),
    )


def _first_of_equals(ordered: Floats) -> Counts:
    """Where each run of equal p values starts: equal ones share the strictest of their steps."""
    places = np.broadcast_to(np.arange(ordered.shape[-1]), ordered.shape)
    starts = np.ones(ordered.shape, dtype=np.bool_)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first: Counts = np.maximum.accumulate(np.where(starts, places, 0), axis=-1)
    return first


def closed(log_figures: Floats, p_values: Floats) -> Floats:
    """Adjust the p of every pair: the largest p of all hypotheses that hold the two to be equal."""
    contestants = log_figures.shape[1]
    place = {pair: i for i, pair in enumerate(combinations(range(contestants), 2))}
    adjusted = p_values.copy()
    relabelled: dict[Group, _Relabelled] = {}
    for groups in hypotheses(contestants):
        if len(groups) == 1 and len(groups[0]) == 2:
            continue
        for group in groups:
            if group not in relabelled:
                relabelled[group] = _Relabelled(log_figures[:, list(group)])
        p = _p_of_hypothesis([relabelled[group] for group in groups])
        for group in groups:
            for pair in combinations(group, 2):
                adjusted[place[pair]] = max(adjusted[place[pair]], p)
    return adjusted


@lru_cache(maxsize=MOST_CLOSED + 1)
def hypotheses(contestants: int) -> tuple[tuple[Group, ...], ...]:
    """Every split of the contestants into groups of equal ones; those equal to no other are left out."""

    def splits(of: int) -> Iterator[tuple[Group, ...]]:
        if of == 0:
            yield ()
            return
        for groups in splits(of - 1):
            yield (*groups, (of - 1,))
            for i, group in enumerate(groups):
                yield (*groups[:i], (*group, of - 1), *groups[i + 1 :])

    found = (tuple(group for group in groups if len(group) > 1) for groups in splits(contestants))
    return tuple(groups for groups in found if groups)


def _p_of_hypothesis(groups: list[_Relabelled]) -> float:
    """Compute p; groups of one size need separate draws, and sorting by scores makes p independent of names."""
    ordered = sorted(groups, key=lambda group: group.key)
    observed = sum(group.observed for group in ordered)
    drawn = sum(group.drawn(stream) for stream, group in enumerate(ordered))
    reached = int(np.count_nonzero(drawn >= observed * _JUST_BELOW))
    return (1 + reached) / (1 + _DRAWS)


class _Relabelled:
    """One group's statistic, as observed and under drawn labels.

    The draws start from members sorted inside each block, and the blocks are sorted as well, so that neither the
    names nor the order of the blocks change anything.
    """

    def __init__(self, log_figures: Floats) -> None:
        scores, squares = _merged(*pair_scores(log_figures))
        rows, self._members = scores.shape[:2]
        self._pairs = list(combinations(range(self._members), 2))
        first, second = np.array(self._pairs).T
        self.observed = float(_statistic(scores[:, first, second].sum(axis=0), squares[:, first, second].sum(axis=0)))
        by_size = np.argsort(scores.sum(axis=2), axis=1)
        row = np.arange(rows)[:, None, None]
        scores, squares = (each[row, by_size[:, :, None], by_size[:, None, :]] for each in (scores, squares))
        order = np.lexsort(scores[:, first, second].T)
        self._scores, self._squares = scores[order], squares[order]
        self.key = (self._members, self._scores.tobytes())
        self._drawn: dict[int, Floats] = {}

    def drawn(self, stream: int) -> Floats:
        if stream not in self._drawn:
            orders, picked = drawn_relabellings(self._scores.shape[0], self._members, stream)
            found: Floats = np.zeros(_DRAWS)
            for a, b in self._pairs:
                sums, squares = (
                    each[:, orders[:, a], orders[:, b]].ravel()[picked].sum(axis=1)
                    for each in (self._scores, self._squares)
                )
                found += _statistic(sums[:, None], squares[:, None])
            self._drawn[stream] = found
        return self._drawn[stream]


def _statistic(sums: Floats, squares: Floats) -> Floats:
    """Over the pairs, the last axis: the fourth powers of what would each be about standard normal."""
    normal_squared = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
    total: Floats = (normal_squared**2).sum(axis=-1)
    return total


def pair_scores(log_figures: Floats) -> tuple[Floats, Floats]:
    """Score every pair in every block, shaped (blocks, members, members), and square the score.

    The signed rank of the difference by its size over all blocks and pairs, moved away from zero by a quarter of the
    greatest. Whole numbers, so that sums are exact.
    """
    members = log_figures.shape[1]
    first, second = np.triu_indices(members, k=1)
    differences = np.rint((log_figures[:, first] - log_figures[:, second]) / ROUNDING)
    _, which, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    twice_the_midranks = (2 * np.cumsum(counts) - counts + 1)[which.reshape(differences.shape)]
    signed = np.sign(differences) * (2 * twice_the_midranks + differences.size)
    scores = np.zeros((log_figures.shape[0], members, members))
    scores[:, first, second] = signed
    scores[:, second, first] = -signed
    return scores, scores**2


def _merged(scores: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """At most sixty rows: blocks that are relabelled together are added up, similar ones in different rows."""
    if scores.shape[0] <= _MOST_RELABELLED:
        return scores, squares
    order = np.lexsort(np.sort(scores.sum(axis=2), axis=1).T)
    row = np.arange(order.size) % _MOST_RELABELLED
    merged = np.zeros((2, _MOST_RELABELLED, *scores.shape[1:]))
    np.add.at(merged[0], row, scores[order])
    np.add.at(merged[1], row, squares[order])
    return merged[0], merged[1]


@lru_cache(maxsize=64)
def drawn_relabellings(blocks: int, members: int, stream: int) -> tuple[Counts, Counts]:
    """All orders of the members, and for each draw and block the place of the order it picked.

    Fixed per size, so that the same figures always give the same answer.
    """
    orders = np.array(list(permutations(range(members))))
    rng = np.random.default_rng((blocks, members, stream))
    picked = rng.integers(0, len(orders), (_DRAWS, blocks)) + len(orders) * np.arange(blocks)
    return orders, picked
