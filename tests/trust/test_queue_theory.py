"""The formulae that the load's queue is compared with agree with the recursion that they describe."""

from __future__ import annotations

import numpy as np
import pytest

from .queue_theory import (
    Kind,
    latency_quantile,
    mean_latency,
    share_waiting_at_most,
    variance_of_mean,
    variance_per_request,
    waits,
)

COUNT = 400_000


def latencies(kind: Kind, load: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    random = np.random.default_rng(10)
    due = np.cumsum(random.exponential(1 / load, COUNT))
    service = np.ones(COUNT) if kind == "constant" else random.exponential(1.0, COUNT)
    return waits(due, service) + service


@pytest.mark.parametrize("load", [0.3, 0.6])
@pytest.mark.parametrize("kind", ["constant", "exponential"])
def test_the_mean_and_the_p99_of_the_recursion_are_those_of_the_formulae(kind: Kind, load: float) -> None:
    latency = latencies(kind, load)
    assert latency.mean() == pytest.approx(mean_latency(kind, load), rel=0.02)
    assert np.quantile(latency, 0.99) == pytest.approx(latency_quantile(kind, load, 0.99), rel=0.03)


def test_the_recursion_starts_each_request_when_it_is_due_or_the_one_before_is_complete() -> None:
    due = np.array([0.0, 1.0, 5.0, 5.5])
    assert waits(due, np.array([3.0, 1.0, 2.0, 1.0])).tolist() == [0, 2, 0, 1.5]


def test_without_a_wait_erlangs_distribution_has_the_share_that_finds_the_server_free() -> None:
    assert share_waiting_at_most(0, 0.9) == pytest.approx(0.1)


def test_erlangs_distribution_is_exact_far_in_its_tail() -> None:
    # The tail falls by the factor exp(-theta), where load * (exp(theta) - 1) = theta.
    tails = [1 - share_waiting_at_most(wait, 0.9) for wait in (40.0, 41.0)]
    theta = -np.log(tails[1] / tails[0])
    assert 0.9 * (np.exp(theta) - 1) == pytest.approx(theta, rel=1e-6)


def test_the_variance_of_the_mean_latency_is_that_of_daley() -> None:
    found = variance_of_mean(latencies("exponential", 0.6)) * COUNT
    assert found == pytest.approx(variance_per_request("exponential", 0.6), rel=0.7)  # 20 batches: a factor of 1.6
