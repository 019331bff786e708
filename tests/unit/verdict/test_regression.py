"""Two runs that were not interleaved."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from fairlap.verdict import BadOption, Change, NotPositive, OneBlock, Regression, compare_runs
from fairlap.verdict.gates import regression as rank_sum
from fairlap.verdict.gates.regression import drift_inside
from fairlap.verdict.warnings import EnvironmentDiffers, NotInterleaved, TooFewBlocks
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped,unused-ignore]

# Hollander and Wolfe (1973), page 69: permeability constants at term and at 12 to 26 weeks; R's ?wilcox.test.
AT_TERM = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
EARLY = np.array([1.15, 0.88, 0.90, 0.74, 1.21])
HOME = {"cpu model": "x", "kernel": "6.1", "framework": "torch 2.12"}
STILL = 0.002 * np.array([0.1, -0.7, 0.9, 0.3, -0.2, -0.9, 0.5, -0.4, 0.7, -0.3, 0.2, -0.1])


def runs(shift: float, before: dict[str, str] = HOME, after: dict[str, str] = HOME, **options: Any) -> Regression:
    return compare_runs(
        np.exp(STILL),
        np.exp(STILL[::-1] + shift),
        environment_before=before,
        environment_after=after,
        **options,
    )


def test_the_rank_sum_matches_r_for_the_permeability_data() -> None:
    # R: wilcox.test(x, y, alternative = "g"): W = 35, p-value = 0.1272.
    every = rank_sum.rank_sum_differences(AT_TERM, EARLY)
    assert np.count_nonzero(every > 0) == 35
    assert rank_sum.p_beyond(every, 10, 5) / 2 == pytest.approx(0.1272, abs=5e-5)


@pytest.mark.parametrize(("m", "n"), [(2, 3), (4, 4), (5, 2)])
def test_the_null_distribution_is_that_of_all_arrangements(m: int, n: int) -> None:
    counts = [sum(place - i for i, place in enumerate(c)) for c in combinations(range(m + n), m)]
    expected = [np.mean(np.array(counts) <= u) for u in range(m * n + 1)]
    np.testing.assert_allclose(rank_sum.null_cdf(m, n), expected, rtol=1e-15)


# Two-sided 5 % critical values of U from the published tables (Siegel, table K): reject if U is at most this.
@pytest.mark.parametrize(("m", "n", "critical"), [(4, 4, 0), (5, 5, 2), (8, 8, 13), (10, 5, 8), (20, 20, 127)])
def test_critical_values_of_u_are_those_of_the_published_tables(m: int, n: int, critical: int) -> None:
    assert int(np.searchsorted(rank_sum.null_cdf(m, n), 0.025, side="right")) == critical + 1


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 2**31))
def test_without_ties_the_p_value_is_scipys_and_agrees_with_the_interval(m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.8, 1, m), rng.normal(0, 1, n)
    every = rank_sum.rank_sum_differences(a, b)
    p = rank_sum.p_beyond(every, m, n)
    assert p == pytest.approx(min(1.0, mannwhitneyu(a, b, method="exact").pvalue), rel=1e-9)
    low, high = rank_sum.rank_sum_interval(every, m, n, 0.1)
    assert (low > 0 or high < 0) == (p <= 0.1)


def test_ties_between_the_samples_count_against_both_sides() -> None:
    every = rank_sum.rank_sum_differences(np.array([1.0, 1.0 + 1e-13]), np.array([1.0, 1.0]))
    assert every.tolist() == [0.0] * 4
    assert rank_sum.p_beyond(every, 2, 2) == 1.0


def test_the_same_speed_is_equivalent_once_the_allowance_still_fits_into_the_margin() -> None:
    assert runs(0.0, least_allowance=0.005).change is Change.EQUIVALENT
    assert runs(0.0, least_allowance=0.02).change is Change.INCONCLUSIVE


def test_a_large_change_is_told_with_a_widened_interval() -> None:
    slower, faster = runs(0.09), runs(-0.09)
    assert slower.change is Change.SLOWER
    assert faster.change is Change.FASTER
    assert slower.ratio == pytest.approx(np.exp(0.09), rel=2e-3)
    every = rank_sum.rank_sum_differences(STILL[::-1] + 0.09, STILL)
    low, high = rank_sum.rank_sum_interval(every, 12, 12, 0.05)
    wider = np.log(1.01) + drift_inside(STILL)
    assert slower.low == pytest.approx(np.exp(low - wider))
    assert slower.high == pytest.approx(np.exp(high + wider))
    assert slower.allowance == pytest.approx(np.expm1(wider))
    assert slower.warnings == (NotInterleaved(slower.allowance),)
    assert slower.p == pytest.approx(2 * rank_sum.null_cdf(12, 12)[0])


def test_a_change_inside_the_allowance_is_not_claimed() -> None:
    hidden = runs(0.009)
    assert hidden.change is Change.INCONCLUSIVE
    assert hidden.p == 1.0
    assert runs(0.009, least_allowance=0.0).change is Change.SLOWER


def test_the_p_value_and_the_widened_interval_agree() -> None:
    for shift in np.linspace(-0.03, 0.03, 61):
        found = runs(float(shift))
        assert (found.change in (Change.SLOWER, Change.FASTER)) == (found.p is not None and found.p <= 0.05)


def test_drift_inside_a_run_widens_the_answer() -> None:
    climbing = np.linspace(0, 0.1, 12)
    assert drift_inside(climbing) == pytest.approx(climbing[6:].mean() - climbing[:6].mean())
    assert drift_inside(climbing[::-1]) == drift_inside(climbing)
    assert drift_inside(np.array([1.0, 5.0, 2.0])) == 1.0
    calm = runs(0.04)
    drifting = compare_runs(np.exp(STILL), np.exp(STILL + climbing), environment_before=HOME, environment_after=HOME)
    assert drifting.allowance > calm.allowance + 0.04
    back = compare_runs(np.exp(STILL + climbing), np.exp(STILL), environment_before=HOME, environment_after=HOME)
    assert back.allowance == pytest.approx(drifting.allowance)


def test_differences_of_the_environment_are_named_and_widen() -> None:
    changed = HOME | {"kernel": "6.5", "driver": "580"}
    found = runs(0.09, after=changed)
    assert found.warnings[:2] == (
        EnvironmentDiffers("driver", "not recorded", "580"),
        EnvironmentDiffers("kernel", "6.1", "6.5"),
    )
    assert found.allowance == pytest.approx((1 + runs(0.09).allowance) * 1.06 * 1.03 - 1)
    assert found.change is Change.INCONCLUSIVE
    other = runs(0.09, before=HOME | {"shell": "bash"})
    assert other.allowance == pytest.approx((1 + runs(0.09).allowance) * 1.02 - 1)
    assert other.warnings[0] == EnvironmentDiffers("shell", "bash", "not recorded")


def test_what_was_changed_on_purpose_does_not_widen() -> None:
    newer = HOME | {"framework": "torch 2.13"}
    assert runs(0.09, after=newer, subject=frozenset({"framework"})).allowance == runs(0.09).allowance
    assert runs(0.09, after=newer).allowance > runs(0.09).allowance


def test_other_work_or_another_machine_is_not_comparable() -> None:
    found = runs(0.09, after=HOME | {"cpu model": "y"})
    assert found.change is Change.NOT_COMPARABLE
    assert (found.ratio, found.low, found.high, found.p, found.allowance) == (None, None, None, None, 0.0)
    assert found.warnings == (EnvironmentDiffers("cpu model", "x", "y"),)


def test_too_few_processes_cannot_show_a_change() -> None:
    found = compare_runs([1.0, 1.0, 1.1], [2.0, 2.0, 2.1], environment_before=HOME, environment_after=HOME)
    assert found.change is Change.INCONCLUSIVE
    assert TooFewBlocks(3, 4, 0.05) in found.warnings
    assert (found.low, found.high) == (0.0, np.inf)
    four = compare_runs([1.0] * 4, [2.0] * 4, environment_before=HOME, environment_after=HOME)
    assert four.change is Change.SLOWER


def test_the_smaller_run_is_the_one_with_too_few_processes() -> None:
    found = compare_runs([1.0] * 2, [2.0] * 6, environment_before=HOME, environment_after=HOME)
    assert TooFewBlocks(2, 4, 0.05) in found.warnings
    turned = compare_runs([1.0] * 6, [2.0] * 2, environment_before=HOME, environment_after=HOME)
    assert TooFewBlocks(2, 4, 0.05) in turned.warnings


@pytest.mark.parametrize("turn", [1, -1])
def test_an_interval_that_leaves_the_margin_on_one_side_is_not_equivalence(turn: int) -> None:
    found = compare_runs(
        np.exp(6 * STILL),
        np.exp(6 * STILL[::-1] + turn * 0.009),
        environment_before=HOME,
        environment_after=HOME,
        least_allowance=0.005,
    )
    assert found.low is not None
    assert found.high is not None
    assert (found.low < 1 / 1.02) != (found.high > 1.02)
    assert found.low < 1 < found.high
    assert found.change is Change.INCONCLUSIVE


@pytest.mark.parametrize(
    ("what", "worth"),
    [
        ("driver", 0.06),
        ("cuda", 0.06),
        ("cudnn", 0.06),
        ("firmware", 0.06),
        ("kernel", 0.03),
        ("governor", 0.1),
    ],
)
def test_each_known_difference_has_its_worth(what: str, worth: float) -> None:
    found = runs(0.0, HOME | {what: "old"}, HOME | {what: "new"})
    assert (1 + found.allowance) / (1 + runs(0.0).allowance) == pytest.approx(1 + worth)


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(OneBlock, match="1 processes before and 2 after"):
        compare_runs([1.0], [1.0, 2.0], environment_before={}, environment_after={})
    with pytest.raises(OneBlock):
        compare_runs([1.0, 2.0], [1.0], environment_before={}, environment_after={})
    with pytest.raises(NotPositive, match="after: figure 1"):
        compare_runs([1.0, 2.0], [0.0, 2.0], environment_before={}, environment_after={})
    with pytest.raises(NotPositive, match="before: figure 2"):
        compare_runs([1.0, -2.0], [1.0, 2.0], environment_before={}, environment_after={})
    for options in ({"alpha": 0.0}, {"margin": 0.0}, {"least_allowance": -0.1}, {"least_allowance": 1.0}):
        with pytest.raises(BadOption):
            runs(0.0, HOME, HOME, **options)
