"""The geometric mean of ratios over works: known answers, and how often its interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import BadOption, OneBlock, geometric_mean_ratio
from hypothesis import example, given
from hypothesis import strategies as st

logs = st.lists(st.floats(-3, 3), min_size=2, max_size=12).map(np.array)


def test_of_a_work_twice_as_slow_and_one_twice_as_quick_it_is_1() -> None:
    half = np.log([0.5, 0.5, 0.5])
    found = geometric_mean_ratio([half, -half])
    assert (found.ratio, found.low, found.high) == pytest.approx((1, 1, 1))
    assert (found.works, found.blocks) == (2, 6)


def test_of_one_work_the_interval_is_that_of_students_t_on_the_logs() -> None:
    values = np.log([1.1, 1.2, 1.15, 1.3, 1.05])
    half = 2.7764451 * values.std(ddof=1) / 5**0.5  # the 97.5 % point of t with four degrees of freedom
    found = geometric_mean_ratio([values])
    assert (found.low, found.high) == pytest.approx((np.exp(values.mean() - half), np.exp(values.mean() + half)))


def test_works_weigh_the_same_however_many_blocks_they_have() -> None:
    few, many = np.full(2, np.log(2.0)), np.full(50, np.log(8.0))
    assert geometric_mean_ratio([few, many]).ratio == pytest.approx(4)


@given(st.lists(logs, min_size=1, max_size=4))
@example([np.array([0.0, 1.07e-153])])
def test_seen_from_the_other_contestant_it_is_the_inverse(works: list[np.ndarray]) -> None:
    one, other = geometric_mean_ratio(works), geometric_mean_ratio([-each for each in works])
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))
    assert one.low <= one.ratio <= one.high


def test_the_interval_holds_the_truth_in_95_of_100_runs_whatever_the_blocks_share() -> None:
    """What a block does to both contestants cancels; works differ in noise and in blocks."""
    rng = np.random.default_rng(1)
    truth = np.array([0.1, -0.05, 0.2])
    held = 0
    for _ in range(1000):
        works = []
        for effect, blocks, noise in zip(truth, (6, 10, 20), (0.02, 0.1, 0.05), strict=True):
            shared = rng.normal(0, 1, blocks)
            works.append((shared + effect + rng.normal(0, noise, blocks)) - shared)
        found = geometric_mean_ratio(works)
        held += found.low <= np.exp(truth.mean()) <= found.high
    assert 0.93 < held / 1000 < 0.97


def test_it_takes_two_blocks_of_every_work_and_a_level_between_0_and_1() -> None:
    with pytest.raises(OneBlock):
        geometric_mean_ratio([np.array([0.1, 0.2]), np.array([0.1])])
    with pytest.raises(OneBlock):
        geometric_mean_ratio([])
    with pytest.raises(BadOption):
        geometric_mean_ratio([np.array([0.1, 0.2])], alpha=0)
