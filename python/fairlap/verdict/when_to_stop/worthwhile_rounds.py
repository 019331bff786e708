"""How many rounds a process is worth: chosen from the sizes of spreads and from costs, never from who leads.

A block costs its processes, which start, build and warm up, and then its rounds. What differs between processes is
averaged by blocks alone, what differs between rounds by rounds as well, so the best number of rounds follows from the
two components of variance and the two costs (Kalibera and Jones, Rigorous benchmarking in reasonable time, 2013).
Rounds come in segments: neighbouring rounds share an episode of disturbance and the places of their arrays in memory,
so the component within a process is that between the medians of its segments.

A race that ends when it is decided needs no more precision than its smallest gap asks for, and at least six blocks
whatever the precision. So the number is the one with which the rest of such a race takes the least time.

The components are found from the figures of each block, sorted, and from residuals pooled over its contestants.
Exchanging two equal contestants in any block changes neither, so it changes no later block, and the signs remain fair
coins (see ``stopping``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log1p

import numpy as np

from fairlap.verdict.blocks import Floats
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.figures.rounds import EPISODE_S, block_figures
from fairlap.verdict.when_to_stop.precise_enough import folding

SEGMENT = 5
"""Rounds between which model and inputs stay where they are in memory."""

_FEWEST_MEASURED = 3  # blocks, before their spread says anything
_MOST_SEGMENTS = 12
_FEWEST_BLOCKS = 6  # with which a race may be decided
_STANDARD_ERRORS = 3.0  # that a gap must have to be shown four times in five
_FEWEST_TO_COME = 0.25  # of the blocks that are expected in all: looks at the verdict are that far apart
_LEAST_BETWEEN = 0.1  # of the variance of a block; a smaller share cannot be distinguished from 0


@dataclass(frozen=True, eq=False)
class RacedBlock:
    """Log times shaped (contestants, rounds), and what the block and one of its rounds cost."""

    log_times: Floats
    processes_s: float
    round_s: float


@dataclass(frozen=True)
class Components:
    """Variances of one contestant's log figure, and the gap that is hardest to decide."""

    between_processes: float
    between_segments: float
    gap: float

    def of_block(self, segments: int) -> float:
        return self.between_processes + self.between_segments / segments


def worthwhile_rounds(raced: Sequence[RacedBlock], *, usual: int, margin: float, until_decided: bool) -> int:
    """Choose the rounds of the next block.

    ``usual`` are those of a block of which nothing is known; with a fixed number of blocks, each has at least as many.
    With fewer, they still last longer than an episode of disturbance, so that no process is measured in one alone.
    """
    if len(raced) < _FEWEST_MEASURED:
        return usual
    found = components(raced, margin)
    if found is None:
        return usual
    processes_s = float(np.median([block.processes_s for block in raced]))
    round_s = float(np.median([block.round_s for block in raced]))

    def rest_s(segments: int) -> float:
        spread = found.of_block(segments)
        block_s = processes_s + segments * SEGMENT * round_s
        if not until_decided:
            return spread * block_s
        blocks = max(_FEWEST_BLOCKS, _STANDARD_ERRORS**2 * 2 * spread / found.gap**2)
        return max(blocks - len(raced), _FEWEST_TO_COME * blocks) * block_s

    fewest = -(-usual // SEGMENT)
    if until_decided:
        fewest = min(fewest, ceil(EPISODE_S / (SEGMENT * round_s)))
    return SEGMENT * min(range(fewest, max(fewest, _MOST_SEGMENTS) + 1), key=rest_s)


def components(raced: Sequence[RacedBlock], margin: float) -> Components | None:
    """None where no block has two segments."""
    segments = [medians_of_segments(block.log_times) for block in raced]
    within = [each for each in map(_within, segments) if each is not None]
    if not within:
        return None
    between_segments = float(np.median(within))
    ranked = np.sort([block_figures(block.log_times) for block in raced], axis=1)
    gaps = np.diff(ranked, axis=1)
    spread, distance = _unfolded(gaps)
    total = float(np.mean(spread**2)) / 2
    usual = float(np.mean([1 / each.shape[1] for each in segments]))
    return Components(
        max(total - usual * between_segments, _LEAST_BETWEEN * total),
        between_segments,
        float(np.maximum(distance, log1p(margin) - distance).min()),  # to be shown to differ, or to be equivalent
    )


def _unfolded(gaps: Floats) -> tuple[Floats, Floats]:
    """Estimate the true spread of each gap between neighbours, and its mean.

    Gaps that look folded at their middle are taken as those of equal contestants: below one spread, the shape of a
    folded normal hardly shows its mean.
    """
    folded, widenings, shifts = folding()
    apparent = np.maximum(gaps.std(axis=0, ddof=1), signed_rank.ROUNDING)
    ratios = gaps.mean(axis=0) / apparent
    equal = ratios < np.interp(1.0, shifts, folded)
    around_zero = np.maximum(np.sqrt(np.mean(gaps**2, axis=0)), signed_rank.ROUNDING)
    spread: Floats = np.where(equal, around_zero, apparent * np.interp(ratios, folded, widenings))
    distance: Floats = np.where(equal, 0.0, np.sqrt(np.maximum(np.mean(gaps**2, axis=0) - spread**2, 0.0)))
    return spread, distance


def medians_of_segments(log_times: Floats) -> Floats:
    """Take the medians of segments, shaped (contestants, segments), without what a whole round has in common.

    Rounds that do not fill a segment go with the last.
    """
    own = log_times - log_times.mean(axis=0)
    count = max(1, own.shape[1] // SEGMENT)
    edges = [SEGMENT * number for number in range(1, count)]
    return np.stack([np.median(part, axis=1) for part in np.split(own, edges, axis=1)], axis=1)


def _within(medians: Floats) -> float | None:
    """Estimate a contestant's own variance between segments, such that its median over blocks is right."""
    contestants, segments = medians.shape
    freedom = (contestants - 1) * (segments - 1)
    if freedom == 0:
        return None
    own = medians - medians.mean(axis=0) - medians.mean(axis=1, keepdims=True) + medians.mean()
    typical = (1 - 2 / (9 * freedom)) ** 3  # the median of chi squared over its degrees (Wilson and Hilferty, 1931)
    return float((own**2).sum() / freedom / typical)
