"""Closed testing, Holm's correction, and the levels of the intervals."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from fairlap.verdict.blocks import Floats
from fairlap.verdict.exact_tests.multiplicity import closed, correct_differences, holm, hypotheses
from fairlap.verdict.exact_tests.signed_rank import p_two_sided, walsh_averages
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_marks import needed

multitest = needed("statsmodels.stats.multitest")

p_lists = st.lists(st.integers(1, 400).map(lambda k: k / 4000), min_size=1, max_size=30).map(np.array)


# statsmodels collects garbage in every call, which takes a tenth of a second in a full test run.
@pytest.mark.slow
@settings(max_examples=25)
@given(p_lists)
def test_decisions_and_adjusted_p_values_are_those_of_statsmodels(p: np.ndarray) -> None:
    steps = holm(p, 0.05)
    reject, adjusted, _, _ = multitest.multipletests(p, 0.05, method="holm")
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


def pair_p_values(figures: Floats) -> Floats:
    first, second = np.triu_indices(figures.shape[1], k=1)
    return p_two_sided(walsh_averages((figures[:, first] - figures[:, second]).T))


def statistic_of_three(figures: Floats) -> float:
    """Written down again, pair by pair: signed ranks over all blocks and pairs, self-normalised, to the fourth."""
    pairs = list(combinations(range(3), 2))
    differences = np.array([[block[a] - block[b] for a, b in pairs] for block in figures])
    sizes = np.sort(np.abs(differences).ravel())
    total = 0.0
    for pair in range(3):
        scores = [np.sign(d) * (1 + np.searchsorted(sizes, abs(d)) + sizes.size / 4) for d in differences[:, pair]]
        total += (sum(scores) ** 2 / sum(score**2 for score in scores)) ** 2
    return total


@pytest.mark.slow_but("5-")
@pytest.mark.parametrize(("blocks", "step", "seed"), [(5, 0.02, 0), (5, 0.06, 1), (6, 0.0, 2), (6, 0.01, 3)])
def test_three_contestants_have_the_p_of_an_enumeration_of_all_relabellings(
    blocks: int, step: float, seed: int
) -> None:
    figures = np.random.default_rng(seed).normal(0, 0.02, (blocks, 3)) + step * np.arange(3)
    own = statistic_of_three(figures)
    orders = [list(order) for order in permutations(range(3))]
    # The statistic does not change when all labels are exchanged alike, so the first block may keep its order.
    every = [
        statistic_of_three(np.array([figures[0], *(row[order] for row, order in zip(figures[1:], drawn, strict=True))]))
        for drawn in product(orders, repeat=blocks - 1)
    ]
    exact = float(np.mean(np.array(every) >= own * (1 - 1e-9)))
    p = pair_p_values(figures)
    error = 4 * np.sqrt(exact * (1 - exact) / 5000) + 1 / 5000
    for adjusted, alone in zip(closed(figures, p), p, strict=True):
        assert adjusted == pytest.approx(max(exact, alone), abs=error)


def test_every_split_of_the_contestants_is_a_hypothesis() -> None:
    assert [len(hypotheses(k)) for k in range(2, 6)] == [1, 4, 14, 51]
    assert set(hypotheses(3)) == {((0, 1),), ((0, 2),), ((1, 2),), ((0, 1, 2),)}
    assert ((0, 3), (1, 2)) in {tuple(sorted(groups)) for groups in hypotheses(4)}
    for groups in hypotheses(5):
        members = [member for group in groups for member in group]
        assert len(members) == len(set(members))


def test_two_contestants_keep_the_p_of_the_signed_rank_test() -> None:
    figures = np.random.default_rng(4).normal(0, 0.02, (9, 2))
    p = pair_p_values(figures)
    assert closed(figures, p).tolist() == p.tolist()


@given(st.integers(0, 2**32 - 1), st.integers(3, 5), st.integers(2, 12), st.sampled_from([0.0, 0.02, 0.2]))
@settings(max_examples=30)
def test_an_adjusted_p_is_never_below_the_pair_s_own(seed: int, k: int, blocks: int, step: float) -> None:
    figures = np.random.default_rng(seed).normal(0, 0.02, (blocks, k)) + step * np.arange(k)
    p = pair_p_values(figures)
    corrected = correct_differences(figures, p, 0.05)
    assert (corrected.adjusted >= p).all()
    np.testing.assert_array_equal(corrected.shown, corrected.adjusted <= 0.05)
    np.testing.assert_array_equal(corrected.shown, p <= corrected.levels)
    assert (corrected.levels <= 0.05).all()


def test_six_blocks_show_all_pairs_of_five_that_are_apart_and_none_of_those_that_are_equal() -> None:
    figures = np.random.default_rng(0).normal(0, 0.005, (6, 5))
    apart, same = figures + 0.1 * np.arange(5), figures
    assert (closed(apart, pair_p_values(apart)) <= 2 / 64).all()
    assert (closed(same, pair_p_values(same)) > 0.05).all()


def test_a_noisy_contestant_does_not_hide_what_the_others_show() -> None:
    figures = np.random.default_rng(0).normal(0, 0.005, (12, 3)) + np.array([0.0, 0.1, 0.0])
    figures[:, 2] += np.where(np.arange(12) % 2, 2.0, -2.0)
    first, *others = closed(figures, pair_p_values(figures))
    assert first < 0.01
    assert min(others) > 0.05


@pytest.mark.slow
def test_blocks_that_are_relabelled_together_test_as_well() -> None:
    figures = np.random.default_rng(1).normal(0, 0.02, (900, 3)) + np.array([0.0, 0.0, 0.01])
    ab, ac, bc = closed(figures, pair_p_values(figures))
    assert ab > 0.05
    assert max(ac, bc) < 0.001


def test_figures_that_never_differ_are_not_shown() -> None:
    figures = np.zeros((8, 3))
    assert closed(figures, pair_p_values(figures)).tolist() == [1.0, 1.0, 1.0]


def test_more_than_five_contestants_are_corrected_by_holm() -> None:
    figures = np.random.default_rng(2).normal(0, 0.02, (12, 6)) + 0.01 * np.arange(6)
    p = pair_p_values(figures)
    for closed_or_not, by_holm in zip(correct_differences(figures, p, 0.05), holm(p, 0.05), strict=True):
        np.testing.assert_array_equal(closed_or_not, by_holm)
