"""Welch's test alongside the verdict, and the self-test's arithmetic."""

import numpy as np
import pytest
from fairlap.verdict import BadOption, block_table, means_and_spreads, welch
from fairlap.verdict.false_positive_rate import false_positives
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
