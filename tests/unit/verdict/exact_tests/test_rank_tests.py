"""Tests on ranks and signs against published values, brute force and SciPy."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from fairlap.verdict.blocks import BadOption
from fairlap.verdict.exact_tests import rank_sum
from fairlap.verdict.exact_tests import signed_rank as sr
from fairlap.verdict.exact_tests.signed_rank import (
    cut_from_each_end,
    equivalence_interval,
    log_margin,
    p_equivalent,
    sign_interval,
)
from hypothesis import given
from hypothesis import strategies as st
from machine_marks import needed
from scipy.stats import binomtest, mannwhitneyu, wilcoxon  # type: ignore[import-untyped,unused-ignore]

weightstats = needed("statsmodels.stats.weightstats")

# Hollander and Wolfe (1973), page 29: depression scores of nine patients before and after a tranquilliser,
# the paired example of R's ?wilcox.test.
BEFORE = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
AFTER = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])

# Darwin's maize: heights of cross-fertilised less self-fertilised plants, eighths of an inch (Fisher 1935).
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], dtype=float)

# Two-sided critical values of the signed-rank sum as printed in textbooks (Conover, table A12; Siegel,
# table H): reject if the smaller sum is at most this. None means that no sum rejects.
CRITICAL_05 = {5: None, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34,
               18: 40, 19: 46, 20: 52, 21: 58, 22: 65, 23: 73, 24: 81, 25: 89, 26: 98, 27: 107, 28: 116,
               29: 126, 30: 137}  # fmt: skip
CRITICAL_01 = {7: None, 8: 0, 9: 1, 10: 3, 11: 5, 12: 7, 13: 9, 14: 12, 15: 15, 16: 19, 17: 23, 18: 27,
               19: 32, 20: 37, 25: 68, 30: 109}  # fmt: skip


def test_p_value_and_interval_match_what_r_gives_for_hollander_and_wolfes_depression_scores() -> None:
    # R: wilcox.test(x, y, paired = TRUE, conf.int = TRUE): V = 40, p-value = 0.03906,
    # 95 percent confidence interval 0.010 0.786, (pseudo)median 0.46; alternative = "greater": p = 0.01953.
    walsh = sr.walsh_averages(BEFORE - AFTER)
    low, high = sr.interval(walsh, 0.05)
    assert np.count_nonzero(walsh > 0) == 40
    assert float(sr.p_two_sided(walsh)) == 20 / 512
    assert float(sr.p_above(walsh)) == 10 / 512
    assert float(sr.p_below(walsh)) == 505 / 512
    assert float(sr.centre(walsh)) == pytest.approx(0.46, abs=1e-12)
    assert (float(low), float(high)) == pytest.approx((0.010, 0.786), abs=1e-12)


def test_the_p_value_matches_the_published_one_for_darwins_maize() -> None:
    # R: wilcox.test(x): V = 96, p-value = 0.04126.
    walsh = sr.walsh_averages(DARWIN)
    assert np.count_nonzero(walsh > 0) == 96
    assert float(sr.p_two_sided(walsh)) == pytest.approx(0.04126, abs=5e-6)


@pytest.mark.parametrize(("level", "table"), [(0.05, CRITICAL_05), (0.01, CRITICAL_01)])
def test_critical_values_are_those_of_the_published_tables(level: float, table: dict[int, int | None]) -> None:
    for n, critical in table.items():
        tolerated = int(np.searchsorted(sr.null_cdf(n), level / 2, side="right"))
        assert tolerated == (0 if critical is None else critical + 1), n


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_null_distribution_is_that_of_all_sign_patterns(n: int) -> None:
    sums = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product([0, 1], repeat=n)]
    expected = [sum(s <= t for s in sums) / 2**n for t in range(n * (n + 1) // 2 + 1)]
    np.testing.assert_array_equal(sr.null_cdf(n), expected)


def test_the_null_distribution_cannot_be_changed_by_a_caller() -> None:
    with pytest.raises(ValueError, match="read-only"):
        sr.null_cdf(4)[0] = 1.0


@pytest.mark.parametrize("n", [6, 7, 12, 25, 40])
def test_p_values_without_ties_are_scipys_exact_ones(n: int) -> None:
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.3, -0.8):
        d = rng.normal(shift, 1, n)
        walsh = sr.walsh_averages(d)
        assert float(sr.p_two_sided(walsh)) == pytest.approx(wilcoxon(d, method="exact").pvalue, rel=1e-12)
        greater = wilcoxon(d, method="exact", alternative="greater").pvalue
        assert float(sr.p_above(walsh)) == pytest.approx(greater, rel=1e-12)


@pytest.mark.parametrize(
    "sizes",
    [[0, 0, 1, 1, 2, 2, 3], [1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 2, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]],
)
def test_with_ties_and_zeros_no_level_is_exceeded_over_all_sign_patterns(sizes: list[int]) -> None:
    patterns = np.array(list(product([-1, 1], repeat=len(sizes)))) * np.array(sizes, dtype=float)
    p = sr.p_two_sided(sr.walsh_averages(patterns))
    for level in np.unique(p):
        assert np.mean(p <= level) <= level


def test_a_zero_average_counts_against_both_sides() -> None:
    walsh = sr.walsh_averages(np.array([-1.0, 0.0, 1.0]))
    assert float(sr.p_above(walsh)) == float(sr.p_below(walsh)) == 1 - 2 / 8
    assert float(sr.p_two_sided(walsh)) == 1.0


def test_only_zeros_are_no_evidence_at_all() -> None:
    walsh = sr.walsh_averages(np.zeros(20))
    low, high = sr.interval(walsh, 0.05)
    assert float(sr.p_two_sided(walsh)) == 1.0
    assert float(low) == float(high) == 0.0


def test_rounding_does_not_turn_a_tie_into_evidence() -> None:
    walsh = sr.walsh_averages(np.array([0.1 + 0.2, -0.3, 1e-13, 5e-12]))
    assert np.count_nonzero(walsh == 0) == 2
    assert walsh[walsh > 0].min() == pytest.approx(2.525e-12)


def test_walsh_averages_are_all_means_of_two_sorted() -> None:
    walsh = sr.walsh_averages(np.array([4.0, 1.0, 2.0]))
    np.testing.assert_array_equal(walsh, [1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
    assert float(sr.centre(walsh)) == 2.25
    assert float(sr.centre(sr.walsh_averages(np.array([4.0, 1.0])))) == 2.5


@pytest.mark.parametrize("n", [1, 2, 3, 12, 60, 231])
def test_the_sample_size_is_recovered_from_the_walsh_averages(n: int) -> None:
    assert sr.sample_size(np.zeros(n * (n + 1) // 2)) == n


def test_many_experiments_at_once_give_what_each_gives_alone() -> None:
    d = np.random.default_rng(0).normal(0.5, 1, (4, 3, 10))
    levels = np.linspace(0.01, 0.4, 12).reshape(4, 3)
    walsh = sr.walsh_averages(d)
    low, high = sr.interval(walsh, levels)
    for place in np.ndindex(4, 3):
        alone = sr.walsh_averages(d[place])
        assert sr.p_two_sided(walsh)[place] == sr.p_two_sided(alone)
        assert sr.centre(walsh)[place] == sr.centre(alone)
        alone_low, alone_high = sr.interval(alone, float(levels[place]))
        assert float(low[place]) == float(alone_low)
        assert float(high[place]) == float(alone_high)


def test_an_interval_at_an_unreachable_level_is_unbounded() -> None:
    walsh = sr.walsh_averages(np.arange(1.0, 6.0))
    low, high = sr.interval(walsh, np.array(0.0624))
    assert (float(low), float(high)) == (-np.inf, np.inf)
    low, high = sr.interval(walsh, np.array(0.0625))
    assert (float(low), float(high)) == (1.0, 5.0)


@pytest.mark.parametrize(("level", "blocks"), [(0.05, 6), (0.005, 9), (0.0625, 5), (1.0, 1), (0.05 / 900, 16)])
def test_the_fewest_blocks_that_can_reach_a_level(level: float, blocks: int) -> None:
    assert sr.blocks_to_reach(level) == blocks


numbers = st.lists(st.integers(-20, 20).map(lambda k: k / 8), min_size=2, max_size=20).map(np.array)
levels = st.sampled_from([0.3, 0.1, 0.05, 0.01, 0.05 / 45, 1 / 16, 1 / 32])


@given(numbers, levels)
def test_test_and_interval_never_disagree(d: np.ndarray, level: float) -> None:
    walsh = sr.walsh_averages(d)
    low, high = sr.interval(walsh, level)
    assert (low > 0 or high < 0) == (sr.p_two_sided(walsh) <= level)


@given(numbers, levels)
def test_turning_the_signs_turns_everything(d: np.ndarray, level: float) -> None:
    walsh, turned = sr.walsh_averages(d), sr.walsh_averages(-d)
    low, high = sr.interval(walsh, level)
    assert sr.p_two_sided(walsh) == sr.p_two_sided(turned)
    assert sr.p_above(walsh) == sr.p_below(turned)
    assert sr.centre(walsh) == -sr.centre(turned)
    assert tuple(map(float, sr.interval(turned, level))) == (-float(high), -float(low))


@given(numbers, levels, st.integers(-8, 8))
def test_shifting_the_differences_shifts_centre_and_interval(d: np.ndarray, level: float, by: int) -> None:
    low, high = sr.interval(sr.walsh_averages(d), level)
    walsh = sr.walsh_averages(d + by)
    assert sr.centre(walsh) == sr.centre(sr.walsh_averages(d)) + by
    assert tuple(map(float, sr.interval(walsh, level))) == (float(low) + by, float(high) + by)


@given(numbers, levels)
def test_the_interval_holds_the_centre(d: np.ndarray, level: float) -> None:
    walsh = sr.walsh_averages(d)
    low, high = sr.interval(walsh, min(level, 0.3))
    assert low <= sr.centre(walsh) <= high


def test_the_p_value_is_the_worse_of_two_shifted_signed_rank_tests() -> None:
    d = np.random.default_rng(3).normal(0.004, 0.01, 15)
    edge = np.log(1.02)
    above = wilcoxon(d + edge, alternative="greater", method="exact").pvalue
    below = wilcoxon(d - edge, alternative="less", method="exact").pvalue
    assert above < below
    assert float(p_equivalent(sr.walsh_averages(d), 0.02)) == pytest.approx(below, rel=1e-12)
    assert float(p_equivalent(sr.walsh_averages(-d), 0.02)) == pytest.approx(below, rel=1e-12)


def test_on_many_normal_differences_it_agrees_with_the_t_based_tests() -> None:
    rng = np.random.default_rng(2)
    b = rng.normal(0, 1, 60)
    for shift, expected in ((0.0, True), (0.03, False)):
        d = rng.normal(shift, 0.02, 60)
        ours = float(p_equivalent(sr.walsh_averages(d), 0.02))
        theirs = weightstats.ttost_paired(b + d, b, -np.log(1.02), np.log(1.02))[0]
        assert (ours <= 0.05) == (theirs <= 0.05) == expected


@given(st.lists(st.integers(-30, 30).map(lambda k: k / 1000), min_size=3, max_size=16).map(np.array))
def test_equivalence_is_shown_exactly_where_its_interval_lies_inside_the_margin(d: np.ndarray) -> None:
    walsh = sr.walsh_averages(d)
    low, high = equivalence_interval(walsh, 0.05)
    inside = -np.log(1.02) < low and high < np.log(1.02)
    assert inside == (p_equivalent(walsh, 0.02) <= 0.05)


def test_a_margin_means_the_same_from_both_sides() -> None:
    assert log_margin(0.02) == pytest.approx(np.log(1.02), rel=1e-15)
    for margin in (0.0, -0.1, 1.0):
        with pytest.raises(BadOption, match="margin"):
            log_margin(margin)


# Order statistics of the sign interval at 95 %, as printed in tables for the median.
@pytest.mark.parametrize(
    ("n", "cut"),
    [(2, 0), (5, 0), (6, 1), (7, 1), (8, 1), (9, 2), (10, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10)],
)
def test_the_sign_interval_cuts_as_many_as_the_tables_say(n: int, cut: int) -> None:
    assert cut_from_each_end(n, 0.05) == cut
    if cut:
        assert binomtest(cut - 1, n).pvalue <= 0.05 < binomtest(cut, n).pvalue


def test_the_sign_interval_is_made_of_order_statistics() -> None:
    values = np.array([5.0, 1, 9, 3, 7, 2, 8, 4, 6])
    assert sign_interval(values, 0.05) == (2.0, 8.0)
    assert sign_interval(values[:5], 0.05) == (-np.inf, np.inf)
    assert sign_interval(np.arange(1.0, 7.0), 0.05) == (1.0, 6.0)


def test_a_level_met_exactly_is_met() -> None:
    assert cut_from_each_end(5, 1 / 16) == 1
    assert cut_from_each_end(5, 1 / 17) == 0


@pytest.mark.slow_but("5-8")
@pytest.mark.parametrize(("first", "second"), [(2, 10), (3, 10), (5, 8), (5, 50), (1, 40)])
def test_a_shift_is_in_the_interval_where_the_exact_test_does_not_reject_it(first: int, second: int) -> None:
    drawn = np.random.default_rng([first, second])
    for _ in range(20):
        a, b = drawn.normal(1, 1, first), drawn.normal(0, 1, second)
        middle, low, high = rank_sum.shift(a, b)
        assert low <= middle <= high
        for end, beyond in ((low, -1), (high, 1)):
            assert mannwhitneyu(a - (end + 1e-9 * beyond), b, method="exact").pvalue <= 0.05
            assert mannwhitneyu(a - (end - 1e-9 * beyond), b, method="exact").pvalue > 0.05


@pytest.mark.parametrize(("first", "second"), [(1, 10), (2, 7), (3, 3)])
def test_too_small_samples_bound_nothing(first: int, second: int) -> None:
    assert rank_sum.shift(np.full(first, 100.0), np.arange(float(second)))[1:] == (-math.inf, math.inf)
