"""The latency-bandwidth model, fitted to planted exchanges, and which rank is a straggler."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.verdict import TooFewScales, difference, latency_bandwidth, slowest_rank
from fairlap.verdict.blocks import Floats

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
