"""Modes between processes and what goes with them."""

from dataclasses import replace

import numpy as np
import pytest
from fairlap.verdict import (
    BadOption,
    UnequalBlocks,
    block_table,
    contestant_figure,
    find_modes,
    halves_of_rounds,
    judge,
    mode_causes,
)
from fairlap.verdict.warnings import ModesUnderneath

# Twelve processes of one small network as they were found on a shared machine: median ms and minor page
# faults per call. One process in four keeps its memory and is 2.5 times as fast.
MEDIAN_MS = np.array([2.70, 2.68, 1.08, 2.71, 2.69, 2.73, 1.09, 2.66, 2.70, 1.07, 2.72, 2.69])
FAULTS = [1409, 1409, 0, 1409, 1410, 1409, 0, 1409, 1409, 0, 1409, 1410]
NOISE = 0.01 * np.array([0.3, -0.8, 0.5, 0.1, -0.4, 0.9, -0.2, 0.7, -0.6, 0.2, -0.9, 0.4])


def test_two_modes_are_found_with_their_shares_and_processes() -> None:
    modes = find_modes(np.log(MEDIAN_MS))
    assert modes.several
    assert [mode.value for mode in modes.modes] == pytest.approx([1.08, 2.70], rel=1e-12)
    assert [mode.share for mode in modes.modes] == [0.25, 0.75]
    assert modes.modes[0].processes == (2, 6, 9)
    assert modes.labels().tolist() == [1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1]


def test_modes_that_processes_keep_over_both_halves_of_their_rounds_are_modes() -> None:
    halves = np.full((12, 2), [0.01, -0.01])
    assert find_modes(np.log(MEDIAN_MS), halves).several
    halves[0] = np.log(1.08 / 2.70), 0.0  # one process of twelve is not all of them
    assert find_modes(np.log(MEDIAN_MS), halves).several


def test_an_episode_that_some_processes_met_is_no_mode() -> None:
    halves = np.zeros((12, 2))
    halves[[2, 6, 9], 1] = np.log(2.70 / 1.08)  # slow again in the second half
    modes = find_modes(np.log(MEDIAN_MS), halves)
    assert not modes.several
    assert modes.modes[0].value == pytest.approx(np.median(MEDIAN_MS))
    figure = contestant_figure(np.log(MEDIAN_MS), halves=halves)
    assert figure.value == pytest.approx(np.median(MEDIAN_MS))
    assert figure.low is not None


def test_of_processes_whose_halves_are_unknown_no_modes_are_claimed() -> None:
    assert not find_modes(np.log(MEDIAN_MS), np.full((12, 2), np.nan)).several


def test_groups_of_turns_within_one_process_are_no_modes() -> None:
    figure = contestant_figure(np.log(MEDIAN_MS), one_process=True)
    assert figure.value == pytest.approx(np.median(MEDIAN_MS))
    assert not figure.modes.several
    figures = {"a": MEDIAN_MS.tolist(), "b": np.exp(NOISE).tolist()}
    [found] = judge([block_table(figures, evidence="within one process")])
    assert not [each for each in found.warnings if isinstance(each, ModesUnderneath)]


def test_a_comparison_warns_of_modes_and_not_of_episodes() -> None:
    table = block_table({"a": MEDIAN_MS.tolist(), "b": np.exp(NOISE).tolist()})
    lasting, passing = np.zeros((12, 2)), np.zeros((12, 2))
    passing[[2, 6, 9], 1] = np.log(2.70 / 1.08)
    for halves, count in ((lasting, 1), (passing, 0)):
        [found] = judge([replace(table, halves={"a": halves})])
        assert sum(isinstance(each, ModesUnderneath) for each in found.warnings) == count
    assert replace(table, halves={"a": passing}).first(6).halves["a"].shape == (6, 2)


def test_the_halves_of_rounds_are_compared_with_all_of_them() -> None:
    assert halves_of_rounds([1.0, 1.0, 1.0, 2.0, 2.0, 2.0]) == pytest.approx([-np.log(2) / 2, np.log(2) / 2], abs=1e-12)
    assert np.isnan(halves_of_rounds([])).all()


def test_three_modes_are_found() -> None:
    modes = find_modes(np.log(np.array([1.0, 2.0, 4.0] * 4)) + NOISE)
    assert [len(mode.processes) for mode in modes.modes] == [4, 4, 4]
    assert modes.modes[1].processes == (1, 4, 7, 10)


@pytest.mark.parametrize("sizes", [(2, 5, 5), (5, 2, 5), (5, 5, 2)])
def test_each_of_three_modes_may_be_as_small_as_two_processes(sizes: tuple[int, int, int]) -> None:
    modes = find_modes(np.repeat([0.0, 1.0, 2.0], sizes) + NOISE / 3)
    assert tuple(len(mode.processes) for mode in modes.modes) == sizes


def test_six_processes_can_show_three_modes() -> None:
    assert [m.processes for m in find_modes(np.repeat([0.0, 1.0, 2.0], 2) + NOISE[:6] / 20).modes] == [
        (0, 1),
        (2, 3),
        (4, 5),
    ]


def test_modes_are_never_averaged_into_one_figure() -> None:
    figure = contestant_figure(np.log(MEDIAN_MS))
    assert (figure.value, figure.low, figure.high) == (None, None, None)
    assert len(figure.modes.modes) == 2


def test_one_mode_gives_a_figure_with_its_sign_interval() -> None:
    figure = contestant_figure(NOISE)
    ordered = np.exp(np.sort(NOISE))
    assert figure.value == pytest.approx(np.exp(0.0015))
    assert (figure.low, figure.high) == pytest.approx((ordered[2], ordered[-3]))
    assert not figure.modes.several
    with pytest.raises(BadOption):
        contestant_figure(NOISE, alpha=1.0)
    assert contestant_figure(NOISE, alpha=0.5).low > figure.low  # type: ignore[operator]


def test_one_stray_process_is_not_a_mode() -> None:
    stray = NOISE.copy()
    stray[4] = 1.0
    assert not find_modes(stray).several
    stray[5] = 1.01
    assert find_modes(stray).several


def test_a_mode_needs_a_tenth_of_the_processes() -> None:
    many = np.tile(NOISE, 3)
    many[:3] += 1.0
    assert not find_modes(many).several
    many[3] += 1.0
    assert find_modes(many).several


def test_a_tenth_is_rounded_up() -> None:
    many = np.resize(NOISE, 44)
    many[:4] += 1.0
    assert not find_modes(many).several
    many[4] += 1.0
    assert find_modes(many).several


# With figures s below and s above each centre the pooled spread is s * sqrt(n / (n - groups)), and the gap
# between two centres is their distance less 2 s. For 12 processes it has to be 5 spreads wide, for 30 three.
@pytest.mark.parametrize(
    ("n", "groups", "enough"),
    [(12, 2, 2 + 5 * np.sqrt(12 / 10)), (12, 3, 2 + 5 * np.sqrt(12 / 9)), (30, 2, 2 + 3 * np.sqrt(30 / 28))],
)
def test_the_gap_has_to_be_wide_against_the_pooled_spread(n: int, groups: int, enough: float) -> None:
    s = 0.1
    around = np.tile([-s, s], n // 2)
    centres = np.repeat(np.arange(groups), n // groups)
    assert len(find_modes(around + 1.01 * enough * s * centres).modes) == groups
    assert len(find_modes(around + 0.99 * enough * s * centres).modes) == 1


def test_five_processes_are_too_few_to_speak_of_modes() -> None:
    assert not find_modes(np.array([0, 0, 0, 1, 1.0]) + NOISE[:5] / 10).several
    assert find_modes(np.array([0, 0, 0, 1, 1.0, 1.0]) + NOISE[:6] / 10).several


def test_a_gap_under_three_percent_is_no_mode_however_clean() -> None:
    steps = np.array([0.0, 1.0] * 6)
    assert not find_modes(0.029 * steps + NOISE * 1e-3).several
    assert find_modes(0.031 * steps + NOISE * 1e-3).several


def test_exactly_repeated_figures_can_be_modes() -> None:
    assert [m.value for m in find_modes(np.log([1.0, 2.0] * 6)).modes] == pytest.approx([1.0, 2.0])
    assert not find_modes(np.zeros(12)).several


@pytest.mark.slow_but("8", "20")
@pytest.mark.parametrize("n", [6, 8, 12, 20, 30, 60])
def test_one_peaked_noise_is_seldom_taken_for_modes(n: int) -> None:
    rng = np.random.default_rng(n)
    shapes = {
        "normal": rng.normal(size=(150, n)),
        "uniform": rng.uniform(size=(150, n)),
        "t": rng.standard_t(3, size=(150, n)),
    }
    for name, draws in shapes.items():
        assert sum(find_modes(row).several for row in draws) <= 5, name


def test_the_covariate_that_separates_the_modes_is_named_with_its_remedy() -> None:
    rng = np.random.default_rng(0)
    causes = mode_causes(
        find_modes(np.log(MEDIAN_MS)),
        {
            "block": list(range(12)),
            "page faults per call": FAULTS,
            "migrations": rng.integers(0, 50, 12).tolist(),
            "core": [str(core) for core in rng.integers(0, 2, 12)],
        },
    )
    assert [cause.covariate for cause in causes] == ["page faults per call"]
    assert causes[0].sorted_rightly == 1.0
    assert causes[0].typical == ("0", "1409")
    assert causes[0].p < 0.0125
    assert causes[0].remedy is not None
    assert "MALLOC_TRIM_THRESHOLD_" in causes[0].remedy


def test_a_covariate_by_kind_can_separate_the_modes() -> None:
    cores = ["core 1" if ms < 2 else "core 0" for ms in MEDIAN_MS]
    (cause,) = mode_causes(find_modes(np.log(MEDIAN_MS)), {"board": cores})
    assert (cause.typical, cause.sorted_rightly, cause.remedy) == (("core 1", "core 0"), 1.0, None)


def test_several_kinds_may_share_a_mode() -> None:
    cores = ["c" if ms < 2 else "ab"[i % 2] for i, ms in enumerate(MEDIAN_MS)]
    (cause,) = mode_causes(find_modes(np.log(MEDIAN_MS)), {"core": cores})
    assert cause.sorted_rightly == 1.0
    assert cause.typical == ("c", "b")


def test_a_number_that_never_repeats_can_separate_the_modes() -> None:
    distinct = [f + 0.01 * i for i, f in enumerate(FAULTS)]
    (cause,) = mode_causes(find_modes(np.log(MEDIAN_MS)), {"page faults per call": distinct})
    assert cause.sorted_rightly == 1.0
    assert cause.typical == ("0.06", "1409.07")


def test_the_better_of_two_related_covariates_comes_first() -> None:
    rougher = [1409 if i == 2 else f for i, f in enumerate(FAULTS)]
    modes = find_modes(np.log(np.concatenate([MEDIAN_MS, MEDIAN_MS])))
    causes = mode_causes(modes, {"rough": rougher + FAULTS, "page faults per call": FAULTS * 2})
    assert [cause.covariate for cause in causes] == ["page faults per call", "rough"]
    assert [cause.sorted_rightly for cause in causes] == pytest.approx([1.0, 23 / 24])


@pytest.mark.slow
def test_an_unrelated_covariate_is_seldom_called_a_cause() -> None:
    modes = find_modes(np.log(MEDIAN_MS))
    rng = np.random.default_rng(1)
    called = sum(bool(mode_causes(modes, {"load": rng.normal(size=12).tolist()})) for _ in range(40))
    assert called <= 6


def test_trying_many_covariates_makes_each_harder_to_believe() -> None:
    modes = find_modes(np.log(MEDIAN_MS))
    related = [0 if i in (2, 6) else 5 for i in range(12)]
    (cause,) = mode_causes(modes, {"related": related})
    assert 0.01 < cause.p < 0.05
    assert cause.sorted_rightly == pytest.approx(11 / 12)
    others = {f"constant {i}": [1] * 12 for i in range(9)}
    assert mode_causes(modes, {"related": related} | others) == ()
    assert mode_causes(modes, {"related": related}, alpha=0.01) == ()


def test_a_constant_covariate_is_no_cause() -> None:
    modes = find_modes(np.log(MEDIAN_MS))
    assert mode_causes(modes, {"core": [1] * 12}) == ()
    assert mode_causes(modes, {"core": ["x"] * 12}) == ()


def test_the_middle_of_three_modes_can_be_sorted_by_number() -> None:
    modes = find_modes(np.log(np.array([1.0, 2.0, 4.0] * 4)) + NOISE)
    (cause,) = mode_causes(modes, {"faults": [10, 200, 3_000_000] * 4})
    assert (cause.sorted_rightly, cause.typical) == (1.0, ("10", "200", "3000000"))


def test_without_modes_there_is_no_cause_to_name() -> None:
    assert mode_causes(find_modes(NOISE), {"core": [0, 1] * 6}) == ()


def test_a_covariate_of_another_length_is_refused() -> None:
    with pytest.raises(UnequalBlocks, match="covariate core has 3 values for 12 processes"):
        mode_causes(find_modes(np.log(MEDIAN_MS)), {"core": [1, 2, 3]})
