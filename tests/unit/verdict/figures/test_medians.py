"""Medians of times that not every run has reached, and of the rounds of a block."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.verdict import block_figures, median_time

# Acute myelogenous leukaemia (Miller, 1981): weeks until relapse, and whether it was seen. The medians are published.
MAINTAINED = {9: 1, 13: 1, 13.5: 0, 18: 1, 23: 1, 28: 0, 31: 1, 34: 1, 45: 0, 48: 1, 161: 0}
NOT_MAINTAINED = [
    (5, 1),
    (5, 1),
    (8, 1),
    (8, 1),
    (12, 1),
    (16, 0),
    (23, 1),
    (27, 1),
    (30, 1),
    (33, 1),
    (43, 1),
    (45, 1),
]


def test_published_medians() -> None:
    assert median_time(list(MAINTAINED), [bool(seen) for seen in MAINTAINED.values()])[0] == 31
    times, seen = zip(*NOT_MAINTAINED, strict=True)
    assert median_time(times, [bool(each) for each in seen])[0] == 23


def test_what_was_not_reached_counts_as_longer() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 9.0, 9.0]
    assert median_time(times, [True] * 4 + [False] * 2)[0] == 3.0
    assert median_time(times, [True] * 2 + [False] * 4) == (math.inf, 1.0, math.inf)
    assert median_time(times, [False] * 6) == (math.inf, math.inf, math.inf)


def test_the_interval_covers_the_true_median() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        times, ends = rng.exponential(1.0, 30), rng.uniform(0.5, 4.0, 30)
        _, low, high = median_time(np.minimum(times, ends).tolist(), (times <= ends).tolist())
        covered += low <= math.log(2) <= high
    assert covered / 400 == pytest.approx(0.95, abs=0.04)


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
