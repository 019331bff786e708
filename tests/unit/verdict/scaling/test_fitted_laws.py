"""Laws of scaling and of exchanges, fitted to planted ones: known answers, and how often intervals hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.verdict import TooFewScales, difference, latency_bandwidth, slowest_rank, universal_scalability
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


@pytest.mark.slow
def test_intervals_hold_planted_shares_in_about_nineteen_of_twenty_runs() -> None:
    runs, sigma, kappa = 200, 0.08, 0.004
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


RANKS = (2, 4, 4, 8)
BYTES = (1e6, 1e6, 16e6, 1e6)
ALPHA_NS, BETA = 20e3, 5e9


def exchanges(*, blocks: int = 12, noise: float = 0.0, seed: int = 0, beta: float = BETA) -> Floats:
    n, size = np.array(RANKS, dtype=float), np.array(BYTES)
    exact = 2 * (n - 1) * ALPHA_NS + 2 * (n - 1) / n * size / beta * 1e9
    drawn: Floats = exact * (1 + noise * np.random.default_rng(seed).standard_normal((blocks, n.size)))
    return drawn


def test_without_noise_latency_and_bandwidth_are_found_exactly() -> None:
    law = latency_bandwidth(exchanges(), RANKS, BYTES)
    assert law.alpha_ns.value == pytest.approx(ALPHA_NS)
    assert law.beta_bytes_per_s.value == pytest.approx(BETA)
    assert law.exchange_ns(16, 1e6).value == pytest.approx(30 * ALPHA_NS + 30 / 16 * 1e6 / BETA * 1e9)


def test_bytes_that_cost_nothing_have_an_infinite_bandwidth() -> None:
    law = latency_bandwidth(exchanges(beta=math.inf), RANKS, BYTES)
    assert math.isinf(law.beta_bytes_per_s.value) or law.beta_bytes_per_s.value > 1e15


@pytest.mark.slow
def test_intervals_hold_planted_values_in_about_nineteen_of_twenty_runs() -> None:
    runs = 200
    held = np.zeros(2)
    for seed in range(runs):
        law = latency_bandwidth(exchanges(noise=0.05, seed=seed), RANKS, BYTES)
        found = ((law.alpha_ns, ALPHA_NS), (law.beta_bytes_per_s, BETA))
        held += [each.low <= true <= each.high for each, true in found]
    assert ((held / runs >= 0.90) & (held / runs <= 0.99)).all(), held / runs


def test_it_is_refused_where_latency_and_bandwidth_cannot_be_told_apart() -> None:
    with pytest.raises(TooFewScales):
        latency_bandwidth(exchanges()[:, :1], RANKS[:1], BYTES[:1])
    with pytest.raises(TooFewScales):
        latency_bandwidth(exchanges(blocks=5), RANKS, BYTES)
    with pytest.raises(TooFewScales):
        latency_bandwidth(-exchanges(), RANKS, BYTES)


def test_a_rank_that_is_slower_in_every_block_is_a_straggler_by_what_was_planted() -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.01, (12, 4))
    found = slowest_rank(100e6 * noise * np.array([1.0, 1.0, 1.3, 1.0]))
    assert (found.rank, found.is_one) == (2, True)
    assert found.excess.value == pytest.approx(0.3, rel=0.1)
    assert found.excess.low < 0.3 < found.excess.high


def test_equal_ranks_have_no_straggler_in_nineteen_of_twenty_runs_or_more() -> None:
    false = 0
    for seed in range(200):
        found = slowest_rank(np.exp(np.random.default_rng(seed).normal(0.0, 0.3, (12, 4))))
        false += found.is_one
    assert false / 200 <= 0.05


def test_a_difference_may_be_below_zero_and_few_blocks_bound_nothing() -> None:
    found = difference(np.array([-3.0, -2.0, -1.0, -2.0, -2.5, -1.5, -2.0]))
    assert found.value == -2.0
    assert found.low <= -2.0 <= found.high
    assert math.isinf(difference(np.array([1.0, 2.0])).high)
