"""The interquartile mean against values by hand, and its interval against theory, SciPy and the bootstrap of others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlap.verdict import interquartile_mean
from scipy import stats  # type: ignore[import-untyped,unused-ignore]

RUNS = (120.0, 90.0, 110.0, 300.0, 100.0, 105.0, 95.0, 115.0, 20.0, 130.0)


def test_two_of_ten_runs_are_left_out_at_each_end() -> None:
    """Sorted: 20 90 | 95 100 105 110 115 120 | 130 300."""
    assert interquartile_mean(RUNS)[0] == pytest.approx(645 / 6)
    assert interquartile_mean(RUNS)[0] == pytest.approx(stats.trim_mean(RUNS, 0.25))


def test_of_several_tasks_the_middle_half_is_of_all_runs_together() -> None:
    scores = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    assert interquartile_mean(scores)[0] == pytest.approx((3 + 4 + 10 + 20) / 4)


def test_resamples_stay_within_their_task() -> None:
    """Of tasks whose runs are all alike, every resample is the same."""
    same = np.array([[1.0, 5.0, 9.0, 13.0]] * 6)
    assert interquartile_mean(same) == (7.0, 7.0, 7.0)


def test_the_interval_is_that_of_scipy_s_bootstrap() -> None:
    found = stats.bootstrap(
        (np.array(RUNS),),
        lambda runs, axis: stats.trim_mean(runs, 0.25, axis=axis),
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    _, low, high = interquartile_mean(RUNS)
    assert (low, high) == pytest.approx((found.low, found.high), rel=0.03)


def test_the_interval_of_several_tasks_is_that_of_a_bootstrap_by_hand() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(100, 10, (12, 3)) + np.array([0, 20, 40])
    columns = [rng.choice(scores[:, task], (4000, 12)) for task in range(3)]
    by_hand = stats.trim_mean(np.concatenate(columns, axis=1), 0.25, axis=1)
    _, low, high = interquartile_mean(scores)
    assert (low, high) == pytest.approx(tuple(np.quantile(by_hand, (0.025, 0.975))), rel=0.01)


def test_the_interval_covers_the_middle_of_a_normal_distribution() -> None:
    """Percentile intervals of twenty runs cover somewhat less than they state."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(25):
        _, low, high = interquartile_mean(rng.normal(50, 5, 20))
        covered += low <= 50 <= high
    assert 20 <= covered <= 25


def test_runs_without_an_end_count_as_the_slowest() -> None:
    value, low, high = interquartile_mean((*RUNS[:8], math.inf, math.inf))
    assert value == pytest.approx(np.mean(sorted(RUNS[:8])[2:8]))
    assert low < value
    assert high == math.inf
    assert interquartile_mean((*RUNS[:5], *[math.inf] * 5))[0] == math.inf


def test_fewer_than_four_runs_have_no_interval() -> None:
    assert interquartile_mean((1.0, 2.0, 3.0)) == (2.0, 0.0, math.inf)


def test_the_same_runs_always_have_the_same_interval() -> None:
    assert interquartile_mean(RUNS) == interquartile_mean(RUNS)


def test_rliable_computes_the_same() -> None:
    metrics = pytest.importorskip("rliable.metrics", reason="rliable is no dependency")
    scores = np.array(RUNS).reshape(-1, 1)
    assert interquartile_mean(RUNS)[0] == pytest.approx(metrics.aggregate_iqm(scores))
