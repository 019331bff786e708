"""When a race that goes on until it is decided looks at its verdict, chosen blind to who leads, and what a look costs.

Looking at p after every block and stopping at will turns a 5 % test into one of 23 %. Here the verdict is looked at
after few blocks only, and each look spends a part of alpha: the first 0.64 of it, which is just enough for six blocks
of one sign at 5 % (2 of 64 patterns), each further early look half of what is left. A run that ends without a look at
its signs, by its budget or its last block, spends all that is left on the last one. So a race that was never looked at
early is judged at the full alpha.

The blocks to look at are chosen from the figures sorted within each block. Swapping two equal contestants does not
change those, so at each look the labels are as evenly drawn as without it, and the parts of alpha add up
(Bonferroni). Which look is worth its price is a guess about power; no error rate rests on it.

A race with a gate asks whether a contestant is slower than the baseline by more than a bound. Its looks are chosen from
figures in which the baseline takes as much longer as the bound allows: what is swapped without a trace is then a
contestant exactly at the bound, and at such a one the gate errs as rarely as the looks spend.

A look is taken when each gap between neighbouring ranks seems so wide that the test would show it, or so narrow that
equivalence would be shown; the first one after twenty blocks in any case. The looks of a stored run follow from its
figures, so nothing else needs to be stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import sqrt

import numpy as np

from fairlap.verdict.blocks import Counts, Flags, Floats
from fairlap.verdict.detectable_effects import power
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.exact_tests.multiplicity import holm
from fairlap.verdict.exact_tests.signed_rank import log_margin, p_equivalent
from fairlap.verdict.gates.slowdown import Gate
from fairlap.verdict.when_to_stop.precise_enough import folding


@dataclass(frozen=True)
class Design:
    """How a run was to end. ``Design()`` is a fixed number of blocks, judged once.

    ``until_decided``: the verdict was looked at before the end, and the run stopped when all was decided.
    ``only_winner``: only the fastest is compared with each other contestant.
    ``gate``: the run was to show whether contestants are slower than the baseline by more than its bound.
    ``ended_blind``: the run ended for a reason that has nothing to do with its signs: its last block, its budget.
    """

    until_decided: bool = False
    only_winner: bool = False
    ended_blind: bool = True
    gate: Gate | None = None


@dataclass(frozen=True)
class Look:
    """The verdict after so many blocks, tested at this level."""

    blocks: int
    level: float


_FIRST_SHARE = 0.64
_NEXT_SHARE = 0.5
_FEWEST_BLOCKS = 6
_AT_THE_LATEST = 20  # a difference smaller than the spread cannot be seen in sorted figures
_POWER = 0.8
_EQUIVALENT_IN = 0.9  # of the drawn labellings
_LABELLINGS = 40


def looks(log_figures: Floats, *, alpha: float, margin: float, design: Design) -> tuple[Look, ...]:
    """Find every look of a run with these blocks, for figures of which less is better.

    With a gate, they are those in which the baseline takes as much longer as the bound allows.
    """
    blocks = log_figures.shape[0]
    if not design.until_decided:
        return (Look(blocks, alpha),)
    ranked = np.sort(log_figures, axis=1)
    found: list[Look] = []
    left, level, earliest = alpha, _FIRST_SHARE * alpha, _FEWEST_BLOCKS
    for count in possible_looks(blocks):
        if count == blocks and design.ended_blind:
            break
        in_any_case = not found and count >= _AT_THE_LATEST
        if count >= earliest and (in_any_case or _worth_a_look(ranked[:count].tobytes(), count, level, margin, design)):
            found.append(Look(count, level))
            left -= level
            level, earliest = _NEXT_SHARE * left, count + max(2, count // 4)
    if design.ended_blind:
        found.append(Look(blocks, left))
    return tuple(found)


def level_of_an_extra_look(found: tuple[Look, ...], alpha: float) -> float:
    """Compute the level at which the next look would have been tested."""
    return _NEXT_SHARE * (alpha - sum(look.level for look in found)) if found else _FIRST_SHARE * alpha


def possible_looks(blocks: int) -> list[int]:
    """After how many blocks a run until decided may look: every number of blocks at first, then steps of a tenth."""
    counts = [_FEWEST_BLOCKS]
    while counts[-1] < blocks:
        counts.append(max(counts[-1] + 1, int(1.1 * counts[-1])))
    return [count for count in counts if count <= blocks]


@lru_cache(maxsize=512)  # a run asks after each of its blocks, about all before
def _worth_a_look(figures: bytes, blocks: int, level: float, margin: float, design: Design) -> bool:
    """For figures sorted within each block."""
    only_winner = design.only_winner
    ranked = np.frombuffer(figures).reshape(blocks, -1)
    contestants = ranked.shape[1]
    if blocks < signed_rank.blocks_to_reach(level):
        return False
    far = _far_apart(np.diff(ranked, axis=1), level)
    if design.gate is not None:  # it is decided where the baseline is apart from all others, whichever it is
        return bool((np.append(True, far) & np.append(far, True)).any())
    if only_winner and far[0]:
        return True
    edges = [0, *(np.flatnonzero(far) + 1), contestants]
    groups = [(low, high) for low, high in pairwise(edges) if high - low > 1]
    family = contestants * (contestants - 1) // 2
    groups = groups[:1] if only_winner else groups
    return all(_equivalence_is_likely(ranked[:, low:high], level, margin, family, only_winner) for low, high in groups)


def _far_apart(gaps: Floats, level: float) -> Flags:
    """Whether a pair with gaps like these, shaped (blocks, gaps), would likely be shown at this level."""
    blocks = gaps.shape[0]
    spread = np.maximum(gaps.std(axis=0, ddof=1), signed_rank.ROUNDING)
    effects = _effect_over_spread(gaps.mean(axis=0) / spread) * _caution(blocks)
    return np.array([power(round(float(effect), 1), blocks, level) >= _POWER for effect in effects])


def _caution(blocks: int) -> float:
    """Few gaps may seem to spread little by chance."""
    return 1 - 0.5 / sqrt(blocks)


def _effect_over_spread(ratios: Floats) -> Floats:
    """Of the pair, from the mean of its folded differences over their spread."""
    folded, _, shifts = folding()
    effects: Floats = np.where(ratios >= folded[-1], ratios, np.interp(ratios, folded, shifts))
    return effects


def _equivalence_is_likely(ranked: Floats, level: float, margin: float, family: int, only_winner: bool) -> bool:
    """Whether contestants that share these figures evenly would nearly always be shown to be equivalent."""
    blocks, members = ranked.shape
    edge = log_margin(margin)
    typical = np.median(np.diff(ranked, axis=1), axis=0).max()
    if typical > 0.6 * edge * sqrt(blocks):  # hopeless, and cheaper to see than to draw
        return False
    labelled = ranked[np.arange(blocks)[:, None], _labellings(blocks, members)]  # draws, blocks, members
    first, second = np.triu_indices(members, k=1)
    differences = np.moveaxis(labelled[..., first] - labelled[..., second], -1, 1)
    p = np.ones((_LABELLINGS, family))
    p[:, : first.size] = p_equivalent(signed_rank.walsh_averages(differences), margin)
    shown = holm(p, level).shown[:, : first.size]
    if only_winner:
        fastest = np.median(labelled, axis=1).argmin(axis=1)[:, None]
        shown |= (first != fastest) & (second != fastest)
    return float(shown.all(axis=1).mean()) >= _EQUIVALENT_IN


@lru_cache(maxsize=64)
def _labellings(blocks: int, members: int) -> Counts:
    """Orders of the members, shaped (draws, blocks, members); fixed per size."""
    orders = np.broadcast_to(np.arange(members), (_LABELLINGS, blocks, members))
    return np.random.default_rng((blocks, members)).permuted(orders, axis=-1)
