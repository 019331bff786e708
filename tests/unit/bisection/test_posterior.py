"""The posterior is that of its model, integrated by brute force; a race tells what information theory says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fairlap.bisection.next_race import Costs, blocks_for, information_bits, next_position
from fairlap.bisection.posterior import Floats, Posterior, groups_of, posterior_of
from fairlap.bisection.readings import Level, Levels, Reading, levels_of

FLOOR = 0.003
LAST = 6


def levels_at(readings: dict[int, float], deviation: float = 0.01) -> Levels:
    return Levels({place: Level(value, deviation**2, 6) for place, value in readings.items()}, deviation**2 * 6)


def brute_force(readings: dict[int, float], deviation: float) -> Sequence[float]:
    """Sum over one and two changes, and integrate over levels on a fine grid."""
    apart = abs(readings[LAST])
    grid = np.linspace(-4 * apart, 5 * apart, 1801)
    width = grid[1] - grid[0]
    spread = np.sqrt(deviation**2 + FLOOR**2)

    def likelihood(places: range) -> Floats:
        own = [readings[place] for place in places if place in readings]
        squares: Floats = np.array([((each - grid) / spread) ** 2 for each in own]).reshape(-1, grid.size)
        found: Floats = np.exp(-squares.sum(axis=0) / 2)
        return found

    prior_of_good = np.exp(-((grid / FLOOR) ** 2) / 2) / (FLOOR * np.sqrt(2 * np.pi))
    found = np.zeros(LAST)
    for k in range(1, LAST + 1):
        good = (likelihood(range(1, k)) * prior_of_good).sum() * width
        found[k - 1] += 0.8 / LAST * good * likelihood(range(k, LAST + 1)).sum() * width
    pairs = LAST * (LAST - 1) / 2
    for m in range(1, LAST + 1):
        for k in range(m + 1, LAST + 1):
            if not any(place in readings for place in range(m, k)):
                continue  # no reading of the level between: that is one change
            good = (likelihood(range(1, m)) * prior_of_good).sum() * width
            between, bad = likelihood(range(m, k)), likelihood(range(k, LAST + 1))
            clearly_below = grid[:, None] < grid[None, :] - 0.3 * apart
            both = between[:, None] * bad[None, :] * width**2 / (4 * apart)
            found[k - 1] += 0.2 / pairs * good * both[clearly_below].sum()
            found[m - 1] += 0.2 / pairs * good * both[~clearly_below].sum()
    return list(found / found.sum())


@pytest.mark.slow_but("readings1")
@pytest.mark.parametrize(
    "readings",
    [
        {6: 0.03},
        {3: 0.012, 6: 0.03},
        {2: -0.004, 3: 0.018, 4: 0.026, 6: 0.03},
        {1: 0.001, 2: -0.02, 4: -0.018, 5: 0.027, 6: 0.03},
        {1: 0.03, 2: 0.05, 4: 0.028, 6: 0.03},
    ],
)
def test_the_posterior_is_that_of_brute_force(readings: dict[int, float]) -> None:
    found = posterior_of(levels_at(readings), LAST, FLOOR).at_step
    assert found == pytest.approx(brute_force(readings, 0.01), abs=2e-3)


def test_a_speed_up_on_the_way_is_not_the_step() -> None:
    readings = {10: 0.0, 20: -0.04, 39: -0.041, 40: 0.03, 50: 0.029, 64: 0.03}
    found = posterior_of(levels_at(readings, 0.003), 64)
    assert found.at_step[39] > 0.95
    assert found.step == pytest.approx(0.07, rel=0.1)


def test_neither_is_a_smaller_step_before_nor_a_speed_up_after() -> None:
    before = {10: 0.0, 20: 0.02, 39: 0.02, 40: 0.06, 64: 0.06}
    after = {10: 0.0, 11: 0.06, 30: 0.061, 40: 0.03, 64: 0.03}
    assert posterior_of(levels_at(before, 0.003), 64).at_step[39] > 0.95
    assert posterior_of(levels_at(after, 0.003), 64).at_step[10] > 0.95


def test_a_race_between_clear_levels_tells_one_bit_in_the_middle_and_nothing_at_the_end() -> None:
    posterior = Posterior(np.full(64, 1 / 64), 0.3)
    bits = information_bits(posterior, levels_at({64: 0.3}), 6)
    assert bits[31] == pytest.approx(1.0, abs=1e-6)
    assert bits[63] == pytest.approx(0.0, abs=1e-9)
    assert bits[15] == pytest.approx(0.8113, abs=1e-3)  # the entropy of 1/4


def test_a_noisy_race_tells_what_numerical_integration_says() -> None:
    posterior = Posterior(np.full(2, 0.5), 0.03)
    levels = Levels({2: Level(0.03, 1e-4, 6)}, block_variance=6 * (0.03**2 - FLOOR**2))
    grid = np.linspace(-12, 13, 200_001)
    density = (np.exp(-(grid**2) / 2) + np.exp(-((grid - 1) ** 2) / 2)) / np.sqrt(8 * np.pi)
    entropy = -(density * np.log2(density)).sum() * (grid[1] - grid[0])
    expected = entropy - np.log2(np.sqrt(2 * np.pi * np.e))
    assert information_bits(posterior, levels, 6, FLOOR)[0] == pytest.approx(expected, rel=1e-4)


def test_each_further_race_of_a_commit_is_expected_to_tell_less() -> None:
    posterior = Posterior(np.full(64, 1 / 64), 0.01)
    told = []
    for deviation in (0.01, 0.003, 0.001, 0.0003):
        levels = Levels({32: Level(0.005, deviation**2, 6), 64: Level(0.01, 1e-6, 6)}, 6e-4)
        told.append(information_bits(posterior, levels, 6)[31])
    assert told == sorted(told, reverse=True)
    assert told[-1] < 0.1 * told[0]


def test_the_middle_is_raced_first_and_broken_commits_are_left_at_a_distance() -> None:
    levels = levels_at({64: 0.3})
    posterior = posterior_of(levels, 64)
    assert next_position(posterior, levels, 3, ()) == 32
    place = next_position(posterior, levels, 3, {31, 32, 33})
    assert place is not None
    assert 3 <= min(abs(place - each) for each in (31, 32, 33)) <= 8


def test_a_tree_that_is_there_is_raced_where_building_another_costs_much() -> None:
    levels = levels_at({64: 0.3})
    posterior = posterior_of(levels, 64)
    assert next_position(posterior, levels, 3, (), Costs(1.0, 600.0, {28, 64})) == 28


def test_smaller_steps_get_more_blocks_within_bounds() -> None:
    assert [blocks_for(step, 0.02**2) for step in (0.3, 0.031, 0.02, 0.001)] == [3, 4, 9, 12]


def test_commits_that_cannot_be_raced_go_with_the_next_one_that_can() -> None:
    assert [list(each) for each in groups_of(6, {2, 3, 5})] == [[1], [2, 3, 4], [5, 6]]


def test_a_noisy_race_counts_less_than_a_quiet_one() -> None:
    quiet = tuple(0.03 + 0.001 * sign for sign in (-1, 1) * 6)
    noisy = tuple(0.09 + 0.06 * sign for sign in (-1, 1) * 6)
    level = levels_of([Reading(4, quiet), Reading(4, noisy)]).by_position[4]
    assert 0.03 < level.log_ratio < 0.05
    assert level.blocks == 24
