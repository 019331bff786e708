"""Verdicts about scores agree with SciPy and statsmodels, and are wrong as rarely as they state."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from fairlap.verdict.comparison import Verdict
from fairlap.verdict.scores.judge_scores import judge_scores
from fairlap.verdict.scores.resampled import FEWEST_ITEMS, Resampled, resampled_pairs
from fairlap.verdict.scores.right_or_wrong import RightOrWrong, exact_bounds
from machine_marks import needed
from scipy.stats import binomtest, bootstrap, ttest_rel  # type: ignore[import-untyped,unused-ignore]

contingency_tables = needed("statsmodels.stats.contingency_tables")
multitest = needed("statsmodels.stats.multitest")

LEVEL = 0.05


@pytest.mark.parametrize("only_a", [0, 1, 5, 6, 17, 60])
@pytest.mark.parametrize("only_b", [0, 1, 2, 40])
def test_mcnemars_p_is_that_of_statsmodels_and_of_the_binomial_by_hand(only_a: int, only_b: int) -> None:
    found = RightOrWrong(only_a, only_b, 500).p
    assert found == pytest.approx(float(contingency_tables.mcnemar([[300, only_a], [only_b, 100]], exact=True).pvalue))
    by_hand = 1.0 if only_a + only_b == 0 else binomtest(only_a, only_a + only_b, 0.5).pvalue
    assert found == pytest.approx(by_hand)


@pytest.mark.parametrize(("count", "of"), [(0, 9), (1, 9), (4, 9), (9, 9), (37, 1000)])
def test_bounds_of_a_share_are_those_of_scipy(count: int, of: int) -> None:
    expected = binomtest(count, of).proportion_ci(0.95, method="exact")
    assert exact_bounds(count, of, LEVEL) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_interval_excludes_zero_exactly_where_mcnemars_test_rejects() -> None:
    for only_a in range(0, 40, 3):
        for only_b in range(0, 40, 3):
            pair = RightOrWrong(only_a, only_b, 200)
            for level in (0.05, 0.01, 0.05 / 66):
                low, high = pair.interval(level)
                assert (low > 0 or high < 0) == (pair.p <= level), (pair, level)


@pytest.mark.parametrize("items", [60, 600])
@pytest.mark.parametrize(
    ("wins", "losses"), [(0.0, 0.0), (0.02, 0.02), (0.1, 0.1), (0.1, 0.03), (0.1, 0.0), (0.4, 0.1)]
)
def test_the_interval_of_a_difference_misses_the_truth_in_at_most_5_percent(
    items: int, wins: float, losses: float
) -> None:
    drawn = np.random.default_rng(1).multinomial(items, (wins, losses, 1 - wins - losses), size=2000)
    tables, counts = np.unique(drawn[:, :2], axis=0, return_counts=True)
    truth, missed = wins - losses, 0
    for (only_a, only_b), count in zip(tables.tolist(), counts.tolist(), strict=True):
        low, high = RightOrWrong(only_a, only_b, items).interval(LEVEL)
        missed += count * (not low <= truth <= high)
    assert missed / len(drawn) <= LEVEL


@pytest.mark.slow_but("0.03-0.02")
@pytest.mark.parametrize(("wins", "losses"), [(0.01, 0.0), (0.05, 0.0), (0.03, 0.02), (0.1, 0.03), (0.2, 0.15)])
def test_a_difference_at_the_margin_is_called_equivalent_in_at_most_5_percent(wins: float, losses: float) -> None:
    items, margin = 900, wins - losses
    drawn = np.random.default_rng(6).multinomial(items, (wins, losses, 1 - wins - losses), size=2000)
    tables, counts = np.unique(drawn[:, :2], axis=0, return_counts=True)
    pairs = [RightOrWrong(int(a), int(b), items) for a, b in tables]
    shown = [abs(pair.difference) < margin and pair.p_equivalent(margin) <= LEVEL for pair in pairs]
    assert counts[shown].sum() / len(drawn) <= LEVEL + 2 * (LEVEL * (1 - LEVEL) / len(drawn)) ** 0.5
    close = RightOrWrong(3, 1, items)
    assert close.p_equivalent(margin) <= LEVEL


def test_identical_answers_are_equivalent_only_if_there_are_enough_items() -> None:
    for items, outcome in ((100, Verdict.INCONCLUSIVE), (600, Verdict.EQUIVALENT)):
        pairs = {("a", "b"): RightOrWrong(0, 0, items)}
        (found,) = judge_scores(pairs, {("a", "b"): 0.01})
        assert (found.verdict, found.difference) == (outcome, 0)
        assert found.interval.low < 0 < found.interval.high


@pytest.mark.slow
def test_two_of_three_equal_contestants_are_called_different_in_at_most_5_percent() -> None:
    drawn, wrong, runs = np.random.default_rng(2), 0, 1500
    for _ in range(runs):
        hard = drawn.beta(4, 1, size=300)  # each item's chance of being answered rightly
        right = drawn.random((3, 300)) < hard
        pairs = {
            (f"{i}", f"{j}"): RightOrWrong(int((right[i] & ~right[j]).sum()), int((right[j] & ~right[i]).sum()), 300)
            for i, j in ((0, 1), (0, 2), (1, 2))
        }
        found = judge_scores(pairs, dict.fromkeys(pairs, 0.01))
        wrong += any(each.verdict in (Verdict.FASTER, Verdict.SLOWER) for each in found)
    assert wrong / runs <= LEVEL


def _mean(values: np.ndarray, places: np.ndarray) -> float:
    return float(values[places].mean())


@pytest.mark.slow
@pytest.mark.parametrize("items", [FEWEST_ITEMS, 200])
def test_equal_contestants_with_skewed_errors_are_called_different_in_at_most_5_percent(items: int) -> None:
    drawn, wrong, runs = np.random.default_rng(3), 0, 600
    for _ in range(runs):
        both = drawn.exponential(size=items)
        errors = {name: (both + drawn.exponential(size=items)) ** 2 for name in "abc"}
        pairs = resampled_pairs({name: partial(_mean, values) for name, values in errors.items()}, items, 199)
        found = judge_scores(pairs, dict.fromkeys(pairs, 0.01), better="lower")
        wrong += any(each.verdict in (Verdict.FASTER, Verdict.SLOWER) for each in found)
    assert wrong / runs <= LEVEL + 2 * (LEVEL * (1 - LEVEL) / runs) ** 0.5


def test_a_resampled_mean_has_the_standard_error_of_scipy_and_the_p_of_students_paired_test() -> None:
    drawn = np.random.default_rng(4)
    a = drawn.exponential(size=300)
    b = a + drawn.normal(0.03, 0.3, size=300)
    (found,) = resampled_pairs({"a": partial(_mean, a), "b": partial(_mean, b)}, 300, 4999).values()
    expected = bootstrap((a - b,), np.mean, rng=0).standard_error
    assert found.standard_error == pytest.approx(expected, rel=0.05)
    assert found.p == pytest.approx(float(ttest_rel(a, b).pvalue), rel=0.2)
    low, high = found.interval(found.p)
    assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_pairs_are_corrected_together_as_statsmodels_does_it() -> None:
    pairs = {
        ("a", "b"): RightOrWrong(9, 1, 200),
        ("a", "c"): RightOrWrong(20, 5, 200),
        ("b", "c"): RightOrWrong(9, 4, 200),
    }
    found = judge_scores(pairs, dict.fromkeys(pairs, 0.01))
    _, expected, _, _ = multitest.multipletests([each.p for each in pairs.values()], method="holm")
    assert [each.p_adjusted for each in found] == pytest.approx(expected.tolist())
    for each in found:
        excludes_zero = each.interval.low > 0 or each.interval.high < 0
        assert excludes_zero == (each.verdict in (Verdict.FASTER, Verdict.SLOWER))


def test_lower_is_better_for_errors() -> None:
    pairs = {("a", "b"): Resampled(-1.0, 0.1, 100)}
    outcomes = {each: judge_scores(pairs, {("a", "b"): 0.1}, better=each)[0].verdict for each in ("higher", "lower")}
    assert outcomes == {"higher": Verdict.SLOWER, "lower": Verdict.FASTER}


@pytest.mark.slow_but("0.1")
@pytest.mark.parametrize("disagreeing", [0.02, 0.1, 0.3])
def test_a_detectable_difference_is_found_in_four_of_five_runs(disagreeing: float) -> None:
    items, drawn = 800, np.random.default_rng(5)
    typical = round(items * disagreeing)
    difference = RightOrWrong(typical - typical // 2, typical // 2, items).detectable(LEVEL)
    share = max(disagreeing, difference)  # of items; more are won the larger the difference is
    wins = (share + difference) / 2
    tables = drawn.multinomial(items, (wins, share - wins, 1 - share), size=300)
    shown = [RightOrWrong(int(a), int(b), items).p <= LEVEL for a, b, _ in tables]
    assert np.mean(shown) >= 0.76
