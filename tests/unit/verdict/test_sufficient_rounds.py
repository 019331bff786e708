"""A block has fewer rounds where theory says that they hardly widen the interval, whoever leads."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import SEGMENT, RacedBlock, sufficient_rounds
from fairlap.verdict.when_to_stop.sufficient_rounds import spread_of_rounds

MARGIN = 0.02
USUAL = 10


def raced(
    noise: float, *, blocks: int = 40, rounds: int = USUAL, effects: tuple[float, ...] = (0.0, 0.0), seed: int = 1
) -> list[RacedBlock]:
    """Draw normal noise of rounds, of contestants with these effects; what a whole round has in common is large."""
    rng = np.random.default_rng(seed)
    shape = (len(effects), rounds)
    return [
        RacedBlock(
            np.array(effects)[:, None] + noise * rng.normal(size=shape) + 0.2 * rng.normal(size=rounds), 0.2, 0.1
        )
        for _ in range(blocks)
    ]


def chosen(found: list[RacedBlock], *, blocks: int = 6, usual: int = USUAL) -> int:
    return sufficient_rounds(found, usual=usual, margin=MARGIN, blocks=blocks)


def test_steady_rounds_are_few_and_noisy_ones_as_many_as_usual() -> None:
    assert chosen(raced(0.003)) == SEGMENT
    assert chosen(raced(0.05)) == USUAL


def test_what_few_rounds_leave_uncertain_is_a_quarter_of_the_margin_at_most() -> None:
    """By simulation: the medians of as many rounds as were chosen, averaged over the blocks of a work."""
    rng = np.random.default_rng(2)
    for noise in np.linspace(0.005, 0.04, 15):
        if chosen(raced(float(noise), blocks=400)) < USUAL:
            ratios = np.diff(noise * rng.normal(size=(4000, 6, 2, SEGMENT)), axis=2)[:, :, 0]
            assert np.median(ratios, axis=2).mean(axis=1).std() <= 0.26 * MARGIN
            steadiest_enough = noise
    assert 0.012 <= steadiest_enough <= 0.02


def test_more_blocks_need_fewer_rounds_each() -> None:
    found = raced(0.02)
    assert chosen(found, blocks=6) == USUAL
    assert chosen(found, blocks=30) == SEGMENT


@pytest.mark.parametrize("contestants", [2, 3, 5])
def test_the_spread_is_that_of_a_contestant_however_many_there_are(contestants: int) -> None:
    found = raced(0.03, blocks=300, effects=tuple(0.5 * np.arange(contestants)))
    assert np.mean([spread_of_rounds(each.log_times) for each in found]) == pytest.approx(0.03, rel=0.06)


@pytest.mark.parametrize("contestants", [2, 4])
def test_exchanging_contestants_within_any_block_changes_nothing(contestants: int) -> None:
    rng = np.random.default_rng(3)
    for noise in (0.005, 0.014, 0.016, 0.03):
        found = raced(noise, blocks=3, effects=tuple(0.03 * np.arange(contestants)))
        for _ in range(10):
            exchanged = [RacedBlock(each.log_times[rng.permutation(contestants)], 0.2, 0.1) for each in found]
            assert chosen(exchanged) == chosen(found)


def test_without_a_block_or_with_a_single_round_or_contestant_they_are_as_many_as_usual() -> None:
    assert chosen([]) == USUAL
    assert chosen(raced(0.0, rounds=1)) == USUAL
    assert chosen(raced(0.0, effects=(0.0,))) == USUAL


def test_one_disturbed_block_of_three_decides_nothing() -> None:
    found = raced(0.005, blocks=3)
    found[1].log_times[0, 4] += 2.0
    assert chosen(found) == SEGMENT


def test_turns_that_were_asked_for_are_never_more_than_were_asked_for() -> None:
    assert chosen(raced(0.001), usual=2) == 2
