"""The universal scalability law, fitted to planted laws: known answers, and how often its intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import TooFewScales, universal_scalability
from fairlap.verdict.blocks import Floats

SIZES = (1, 2, 4, 8)


def times(sigma: float, kappa: float, *, blocks: int = 12, noise: float = 0.0, seed: int = 0) -> Floats:
    n = np.array(SIZES, dtype=float)
    exact = np.log((1 + sigma * (n - 1) + kappa * n * (n - 1)) / n)
    drawn: Floats = exact + noise * np.random.default_rng(seed).standard_normal((blocks, n.size))
    return drawn


def test_without_noise_the_law_is_found_exactly_and_goes_on_beyond_what_was_measured() -> None:
    law = universal_scalability(times(0.05, 0.01), SIZES)
    assert law.sigma.value == pytest.approx(0.05)
    assert law.kappa.value == pytest.approx(0.01)
    assert law.speed_up(1).value == pytest.approx(1.0)
    assert law.speed_up(32).value == pytest.approx(32 / (1 + 0.05 * 31 + 0.01 * 32 * 31))


def test_speed_ups_are_over_the_smallest_scale_that_was_measured() -> None:
    n = np.array([2.0, 4.0, 8.0])
    logs = np.tile(np.log((1 + 0.1 * (n - 1)) / n), (8, 1))
    law = universal_scalability(logs, (2, 4, 8))
    assert law.sigma.value == pytest.approx(0.1)
    assert law.speed_up(2).value == pytest.approx(1.0)
    assert law.speed_up(16).value == pytest.approx((16 / 2.5) / (2 / 1.1))


def test_no_share_is_below_zero_where_more_threads_are_more_than_proportionally_faster() -> None:
    law = universal_scalability(np.tile(-1.1 * np.log(SIZES), (8, 1)), SIZES)
    assert law.sigma.value == law.kappa.value == 0.0
    assert law.speed_up(16).value == pytest.approx(16.0)


@pytest.mark.parametrize(("sigma", "kappa"), [(0.08, 0.004), (0.15, 0.02)])
def test_intervals_hold_planted_shares_in_about_nineteen_of_twenty_runs(sigma: float, kappa: float) -> None:
    runs = 200
    held = np.zeros(3)
    beyond = 16 / (1 + sigma * 15 + kappa * 16 * 15)
    for seed in range(runs):
        law = universal_scalability(times(sigma, kappa, noise=0.02, seed=seed), SIZES)
        found = (law.sigma, law.kappa, law.speed_up(16))
        held += [each.low <= true <= each.high for each, true in zip(found, (sigma, kappa, beyond), strict=True)]
    assert ((held / runs >= 0.90) & (held / runs <= 0.99)).all(), held / runs


def test_it_is_refused_with_too_few_scales_or_blocks() -> None:
    with pytest.raises(TooFewScales):
        universal_scalability(times(0.1, 0.0)[:, :2], SIZES[:2])
    with pytest.raises(TooFewScales):
        universal_scalability(times(0.1, 0.0, blocks=5), SIZES)
