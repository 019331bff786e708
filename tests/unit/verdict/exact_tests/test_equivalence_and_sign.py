"""Equivalence and the sign interval."""

import numpy as np
import pytest
from fairlap.verdict.blocks import BadOption
from fairlap.verdict.exact_tests import signed_rank
from fairlap.verdict.exact_tests.signed_rank import (
    cut_from_each_end,
    equivalence_interval,
    log_margin,
    p_equivalent,
    sign_interval,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, wilcoxon  # type: ignore[import-untyped,unused-ignore]
from statsmodels.stats.weightstats import ttost_paired  # type: ignore[import-untyped,unused-ignore]


def test_the_p_value_is_the_worse_of_two_shifted_signed_rank_tests() -> None:
    d = np.random.default_rng(3).normal(0.004, 0.01, 15)
    edge = np.log(1.02)
    above = wilcoxon(d + edge, alternative="greater", method="exact").pvalue
    below = wilcoxon(d - edge, alternative="less", method="exact").pvalue
    assert above < below
    assert float(p_equivalent(signed_rank.walsh_averages(d), 0.02)) == pytest.approx(below, rel=1e-12)
    assert float(p_equivalent(signed_rank.walsh_averages(-d), 0.02)) == pytest.approx(below, rel=1e-12)


def test_on_many_normal_differences_it_agrees_with_the_t_based_tests() -> None:
    rng = np.random.default_rng(2)
    b = rng.normal(0, 1, 60)
    for shift, expected in ((0.0, True), (0.03, False)):
        d = rng.normal(shift, 0.02, 60)
        ours = float(p_equivalent(signed_rank.walsh_averages(d), 0.02))
        theirs = ttost_paired(b + d, b, -np.log(1.02), np.log(1.02))[0]
        assert (ours <= 0.05) == (theirs <= 0.05) == expected


@given(st.lists(st.integers(-30, 30).map(lambda k: k / 1000), min_size=3, max_size=16).map(np.array))
def test_equivalence_is_shown_exactly_where_its_interval_lies_inside_the_margin(d: np.ndarray) -> None:
    walsh = signed_rank.walsh_averages(d)
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
