"""A suite decides by the geometric mean of its benchmarks, and none of them may be shown to be too slow."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import (
    ONE_SIDE,
    candidate_over_suite,
    decision_over_suite,
    fewest_blocks_over_suite,
    mean_log_speedups,
)
from fairlap.verdict.false_positive_rate import false_positives
from fairlap.verdict.gates.candidate_over_suite import _is_slower

BOUND = 0.03


def suite(speedups: list[float], blocks: int, *, spread: float = 0.002, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"f{i}": np.log(each) + rng.normal(0, spread, blocks) for i, each in enumerate(speedups)}


def decided(logs: dict[str, np.ndarray], *, gain: float = 0.0, level: float = ONE_SIDE, ended: bool = True) -> str:
    return decision_over_suite(logs, dict.fromkeys(logs, BOUND), gain, level, ended=ended)


def test_the_mean_is_the_geometric_mean_of_a_hand_computation() -> None:
    logs = {"a": np.log([1.0, 4.0]), "b": np.log([2.0, 1.0]), "c": np.log([4.0, 2.0])}
    assert np.exp(mean_log_speedups(logs)) == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize(
    ("speedups", "gain", "decision"),
    [
        ([1.1] * 10, 0.0, "keep"),
        ([1.1] * 5 + [1.0] * 5, 0.0, "keep"),  # 1.1 to the power of a half is 1.049
        ([1.1] * 5 + [1.0] * 5, 0.06, "discard"),
        ([1.3] * 9 + [0.8], 0.0, "discard"),  # one is 25 % slower, whatever the mean
        ([1.3] * 9 + [0.99], 0.0, "keep"),  # slower, but within its bound
        ([0.9] * 10, 0.0, "discard"),
        ([1.0] * 10, 0.02, "discard"),
    ],
)
def test_a_change_is_kept_by_the_mean_unless_one_benchmark_is_too_slow(
    speedups: list[float], gain: float, decision: str
) -> None:
    assert decided(suite(speedups, 20), gain=gain) == decision


def test_nothing_is_kept_before_a_slowdown_could_have_been_shown() -> None:
    """Ten signs alike have a chance of 2^-10; half of 2.5 % over ten benchmarks is 1/800, which nine do not reach."""
    logs = suite([1.2] * 10, 10)
    assert fewest_blocks_over_suite(10, ONE_SIDE, ended=True) == 10
    assert decided({name: own[:9] for name, own in logs.items()}) == "undecided"
    assert decided(logs) == "keep"
    assert decided({"f0": logs["f0"][:7]}) == "keep"


def test_the_slow_benchmark_is_named_with_an_interval_below_its_bound() -> None:
    logs = suite([1.3] * 9 + [0.8], 20)
    found = candidate_over_suite(logs, dict.fromkeys(logs, BOUND), gain=0.0, level=ONE_SIDE, ended=True)
    assert (found.slower, found.mean.decision) == (("f9",), "discard")
    assert found.benchmarks["f9"].interval.high < 1 / (1 + BOUND)
    assert found.benchmarks["f9"].interval.level == pytest.approx(0.005)
    assert found.benchmarks["f9"].speedup == pytest.approx(0.8, rel=0.01)


@pytest.mark.slow
def test_equal_benchmarks_are_kept_and_ones_at_their_bound_discarded_as_rarely_as_stated() -> None:
    """300 suites of ten benchmarks, with heavy tails, a look after every block and one at the end."""
    rng, suites = np.random.default_rng(5), 300
    kept = discarded = 0
    for _ in range(suites):
        noise = rng.standard_t(3, (10, 16)) * 0.02
        equal = {f"f{i}": each for i, each in enumerate(noise)}
        kept += decided(equal) == "keep"
        at_bound = {name: each - np.log1p(BOUND) for name, each in equal.items()}
        discarded += any(_is_slower(at_bound, name, BOUND, ended=True) for name in at_bound)
    assert kept <= false_positives(kept, suites, alpha=ONE_SIDE).allowed
    assert discarded <= false_positives(discarded, suites, alpha=ONE_SIDE).allowed
