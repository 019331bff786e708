"""Changes in two places are compared as SciPy's Welch test does, and a false claim is as rare as stated."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.verdict.comparison import Verdict
from fairlap.verdict.scores.changes import Change, change_of_shares, change_resampled, unequal_change
from fairlap.verdict.scores.judge_scores import judge_scores
from scipy.stats import ttest_ind  # type: ignore[import-untyped,unused-ignore]

LEVEL, METHOD = 0.05, "by hand"


def of_means(values: np.ndarray) -> Change:
    return Change(float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5), len(values) - 1)


def test_the_difference_of_two_changes_is_judged_as_welchs_test_does() -> None:
    drawn = np.random.default_rng(0)
    inside, outside = drawn.normal(0.2, 1.0, 40), drawn.normal(0.0, 2.0, 300)
    found = unequal_change(of_means(inside), of_means(outside), METHOD)
    expected = ttest_ind(inside, outside, equal_var=False)
    assert found.p == pytest.approx(float(expected.pvalue))
    ends = expected.confidence_interval(1 - LEVEL)
    assert found.interval(LEVEL) == pytest.approx((float(ends.low), float(ends.high)))


def test_a_change_of_shares_counts_one_more_item_for_each_side() -> None:
    found = change_of_shares(np.array([1.0, 0.0, 0.0, 0.0, -1.0]))
    assert found.difference == 0
    assert found.standard_error == pytest.approx((1 + 1 + 2) ** 0.5 / 5)
    many = np.r_[np.ones(300), -np.ones(200), np.zeros(4500)]
    assert change_of_shares(many).standard_error == pytest.approx(many.std() / 5000**0.5, rel=0.01)


@pytest.mark.slow_but("40-400-0.02", "400-400-0.0")
@pytest.mark.parametrize("wins", [0.0, 0.004, 0.02, 0.1])
@pytest.mark.parametrize(("inside", "outside"), [(40, 400), (400, 400)])
def test_groups_that_change_alike_are_called_different_in_at_most_5_percent(
    wins: float, inside: int, outside: int
) -> None:
    drawn, runs, wrong = np.random.default_rng(1), 1000, 0
    shares = (wins, 1 - 2 * wins, wins)
    for _ in range(runs):
        one, other = (drawn.choice((-1.0, 0.0, 1.0), size=size, p=shares) for size in (inside, outside))
        wrong += unequal_change(change_of_shares(one), change_of_shares(other), METHOD).p <= LEVEL
    assert wrong / runs <= LEVEL + 2 * (LEVEL * (1 - LEVEL) / runs) ** 0.5


def test_a_group_that_loses_a_tenth_of_its_answers_is_found() -> None:
    lost = change_of_shares(np.r_[-np.ones(20), np.zeros(180)])
    kept = change_of_shares(np.zeros(600))
    pairs = {("int8", "old"): unequal_change(lost, kept, METHOD)}
    (found,) = judge_scores(pairs, {("int8", "old"): 0.01})
    assert (found.verdict, found.difference) == (Verdict.SLOWER, -0.1)
    mirrored = found.mirrored("int8", "young")
    assert (mirrored.verdict, mirrored.b, mirrored.difference) == (Verdict.FASTER, "young", 0.1)
    assert (mirrored.interval.low, mirrored.interval.high) == (-found.interval.high, -found.interval.low)


def test_few_items_without_a_disagreement_are_not_called_alike() -> None:
    for items, outcome in ((60, Verdict.INCONCLUSIVE), (2000, Verdict.EQUIVALENT)):
        none = change_of_shares(np.zeros(items))
        (found,) = judge_scores({("a", "b"): unequal_change(none, none, METHOD)}, {("a", "b"): 0.01})
        assert found.verdict is outcome


def test_a_resampled_change_has_the_standard_error_of_its_mean() -> None:
    drawn = np.random.default_rng(2)
    values = drawn.exponential(size=200)
    again = np.array([values[drawn.integers(0, 200, 200)].mean() for _ in range(4000)])
    found = change_resampled(float(values.mean()), again, 200)
    assert found.standard_error == pytest.approx(values.std(ddof=1) / 200**0.5, rel=0.05)
