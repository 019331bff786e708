"""Holm's correction and its levels."""

import numpy as np
import pytest
from fairlap.verdict.multiplicity import holm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped,unused-ignore]

p_lists = st.lists(st.integers(1, 400).map(lambda k: k / 4000), min_size=1, max_size=30).map(np.array)


# statsmodels collects garbage in every call, which takes a tenth of a second in a full test run.
@settings(max_examples=25)
@given(p_lists)
def test_decisions_and_adjusted_p_values_are_those_of_statsmodels(p: np.ndarray) -> None:
    steps = holm(p, 0.05)
    reject, adjusted, _, _ = multipletests(p, 0.05, method="holm")
    np.testing.assert_allclose(steps.adjusted, adjusted, rtol=1e-12)
    on_the_edge = np.isclose(adjusted, 0.05, rtol=1e-9)
    np.testing.assert_array_equal(steps.shown[~on_the_edge], reject[~on_the_edge])


@given(p_lists)
def test_a_comparison_is_shown_exactly_if_its_p_value_is_within_its_own_level(p: np.ndarray) -> None:
    steps = holm(p, 0.05)
    np.testing.assert_array_equal(steps.shown, p <= steps.levels)
    assert (steps.levels <= 0.05).all()
    assert (steps.levels >= 0.05 / p.size * (1 - 1e-12)).all()


@given(p_lists, st.randoms())
def test_the_order_of_the_comparisons_does_not_matter(p: np.ndarray, random: object) -> None:
    order = list(range(p.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    here, there = holm(p, 0.05), holm(p[order], 0.05)
    np.testing.assert_array_equal(here.levels[order], there.levels)
    np.testing.assert_array_equal(here.shown[order], there.shown)
    np.testing.assert_array_equal(here.adjusted[order], there.adjusted)


def test_the_levels_of_a_worked_example() -> None:
    steps = holm(np.array([0.024, 0.001, 0.9, 0.016]), 0.05)
    assert steps.shown.tolist() == [True, True, False, True]
    assert steps.levels.tolist() == [0.05 / 2, 0.05 / 4, 0.05 / 1, 0.05 / 3]
    assert steps.adjusted.tolist() == pytest.approx([0.048, 0.004, 0.9, 0.048])


def test_a_level_met_exactly_is_met() -> None:
    steps = holm(np.array([0.025, 0.025]), 0.05)
    assert steps.shown.tolist() == [True, True]
    assert steps.levels.tolist() == [0.025, 0.025]
    assert holm(np.array([0.025, 0.05]), 0.05).levels.tolist() == [0.025, 0.05]


def test_equal_p_values_share_the_strictest_of_their_steps() -> None:
    steps = holm(np.array([0.02, 0.001, 0.02]), 0.05)
    assert steps.shown.tolist() == [True, True, True]
    assert steps.levels.tolist() == [0.05 / 2, 0.05 / 3, 0.05 / 2]


def test_nothing_after_the_first_failure_is_shown() -> None:
    steps = holm(np.array([0.04, 0.03, 0.001]), 0.05)
    assert steps.shown.tolist() == [False, False, True]
    assert steps.levels.tolist() == [0.05 / 2, 0.05 / 2, 0.05 / 3]
    assert steps.adjusted.tolist() == [0.06, 0.06, 0.003]


def test_adjusted_p_values_stop_at_one() -> None:
    assert holm(np.array([0.6, 0.7]), 0.05).adjusted.tolist() == [1.0, 1.0]


def test_many_families_at_once_give_what_each_gives_alone() -> None:
    p = np.random.default_rng(0).uniform(0, 0.1, (50, 6))
    together = holm(p, 0.05)
    for row in range(50):
        alone = holm(p[row], 0.05)
        np.testing.assert_array_equal(together.levels[row], alone.levels)
        np.testing.assert_array_equal(together.shown[row], alone.shown)
        np.testing.assert_array_equal(together.adjusted[row], alone.adjusted)
