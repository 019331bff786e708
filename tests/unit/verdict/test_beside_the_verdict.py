"""Figures beside the verdict: Welch's test, the self-test's arithmetic, and the geometric mean of ratios over works."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict import BadOption, OneBlock, block_table, geometric_mean_ratio, means_and_spreads, welch
from fairlap.verdict.false_positive_rate import false_positives
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, ttest_ind  # type: ignore[import-untyped,unused-ignore]

RNG = np.random.default_rng(2)
FIGURES = {"a": RNG.gamma(5, 1, 30), "b": RNG.gamma(6, 2, 30), "c": RNG.gamma(5, 1, 30)}


def test_welchs_test_is_scipys() -> None:
    found = welch(block_table(FIGURES))
    assert [(w.a, w.b) for w in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for row in found:
        expected = ttest_ind(FIGURES[row.a], FIGURES[row.b], equal_var=False)
        assert (row.t, row.degrees_of_freedom, row.p) == pytest.approx(
            (expected.statistic, expected.df, expected.pvalue)
        )


def test_mean_and_deviation_are_those_of_the_figures() -> None:
    rows = means_and_spreads(block_table(FIGURES))
    assert [row.contestant for row in rows] == ["a", "b", "c"]
    assert rows[1].mean == pytest.approx(FIGURES["b"].mean())
    assert rows[1].standard_deviation == pytest.approx(FIGURES["b"].std(ddof=1))
    assert rows[1].runs == 30


def test_equal_constant_figures_have_no_t_value_and_raise_no_warning() -> None:
    (row,) = welch(block_table({"a": [2.0, 2.0], "b": [2.0, 2.0]}))
    assert np.isnan(row.p)


@pytest.mark.parametrize(("trials", "allowed"), [(10_000, 551), (400, 31), (200, 18)])
def test_the_allowed_rejections_are_the_ones_the_trust_suite_states(trials: int, allowed: int) -> None:
    found = false_positives(allowed, trials)
    assert found.allowed == allowed
    assert found.passed
    assert not false_positives(allowed + 1, trials).passed


def test_the_interval_of_the_rate_is_clopper_and_pearsons() -> None:
    found = false_positives(12, 200)
    assert binom.sf(11, 200, found.low) == pytest.approx(0.025, rel=1e-6)
    assert binom.cdf(12, 200, found.high) == pytest.approx(0.025, rel=1e-6)
    assert (found.claims, found.trials) == (12, 200)
    assert false_positives(12, 200, confidence=0.5).low > found.low
    assert false_positives(12, 200, alpha=0.01).allowed == 6
    assert false_positives(0, 1).low == 0.0
    assert false_positives(1, 1).high == 1.0


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((3, 2), {}),
        ((-1, 2), {}),
        ((0, 0), {}),
        ((1, 2), {"alpha": 0.0}),
        ((1, 2), {"alpha": 1.0}),
        ((1, 2), {"confidence": 1.0}),
    ],
)
def test_a_self_test_that_cannot_be_is_refused(arguments: tuple[int, int], options: dict[str, float]) -> None:
    with pytest.raises(BadOption):
        false_positives(arguments[0], arguments[1], **options)


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
