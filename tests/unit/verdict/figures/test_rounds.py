"""A block's figures come from its rounds: what hits a round cancels, and contestants are treated alike."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import block_figures

RNG = np.random.default_rng(5)


def test_the_difference_of_two_is_the_median_of_their_paired_log_ratios() -> None:
    logs = RNG.normal(size=(2, 11))
    first, second = block_figures(logs)
    assert first - second == pytest.approx(np.median(logs[0] - logs[1]), abs=1e-12)


def test_what_hits_a_whole_round_cancels() -> None:
    effects = np.array([[0.0], [0.3], [-0.2], [1.0]])
    bursts = RNG.exponential(size=(1, 10))
    figures = block_figures(effects + bursts)
    assert figures - figures[0] == pytest.approx(effects[:, 0], abs=1e-9)


def test_one_turn_that_was_hit_moves_nothing() -> None:
    logs = np.tile(np.array([[0.0], [0.3], [-0.2]]), 9)
    logs[1, 4] += 5.0
    figures = block_figures(logs)
    assert figures - figures[0] == pytest.approx([0.0, 0.3, -0.2], abs=1e-9)


@pytest.mark.parametrize("contestants", [2, 3, 5])
def test_swapping_two_contestants_swaps_their_figures_and_changes_no_other(contestants: int) -> None:
    logs = RNG.normal(size=(contestants, 10))
    swapped = np.array([1, 0, *range(2, contestants)])
    assert block_figures(logs[swapped]) == pytest.approx(block_figures(logs)[swapped], abs=1e-9)
