"""Change points and courses with known answers."""

import warnings
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
from fairlap.verdict import (
    BadOption,
    Course,
    NotFinite,
    NotPositive,
    OneSample,
    process_figure,
    steady_state,
    throughput,
)
from fairlap.verdict.figures.steady_state import _cheapest_cuts, _quartiles, change_points
from fairlap.verdict.warnings import FewSamplesBeyond, NoSteadyState, TooShortToClassify


def noisy(levels: np.ndarray, spread: float = 0.02, seed: int = 0) -> np.ndarray:
    result: np.ndarray = levels * np.exp(np.random.default_rng(seed).normal(0, spread, levels.size))
    return result


def steps(*parts: tuple[int, float]) -> np.ndarray:
    return np.concatenate([np.full(size, level) for size, level in parts])


def test_a_flat_process_is_flat_from_its_first_sample() -> None:
    found = steady_state(noisy(np.full(120, 5e6)))
    assert (found.course, found.change_points, found.steady_from, found.warnings) == (Course.FLAT, (), 0, ())


def test_a_warm_up_ends_where_it_ends() -> None:
    found = steady_state(noisy(steps((25, 1.4), (95, 1.0))))
    assert (found.course, found.change_points, found.steady_from) == (Course.WARM_UP, (25,), 25)


def test_a_slow_down_is_told_from_a_warm_up() -> None:
    found = steady_state(noisy(steps((30, 1.0), (90, 1.2))))
    assert (found.course, found.steady_from) == (Course.SLOW_DOWN, 30)
    found = steady_state(noisy(steps((30, 1.5), (30, 1.0), (60, 1.2))))
    assert (found.course, found.change_points, found.steady_from) == (Course.SLOW_DOWN, (30, 60), 60)


def test_a_warm_up_in_two_stages_is_a_warm_up() -> None:
    found = steady_state(noisy(steps((30, 1.5), (30, 1.2), (60, 1.0))))
    assert (found.course, found.change_points, found.steady_from) == (Course.WARM_UP, (30, 60), 60)


def test_a_change_in_the_last_quarter_is_no_steady_state() -> None:
    found = steady_state(noisy(steps((100, 1.0), (20, 1.3))))
    assert (found.course, found.steady_from) == (Course.NO_STEADY_STATE, 90)
    assert steady_state(noisy(steps((88, 1.3), (32, 1.0)))).course is Course.WARM_UP


def test_the_last_quarter_may_begin_with_the_change() -> None:
    found = steady_state(noisy(steps((90, 1.3), (30, 1.0)), 0.001))
    assert (found.course, found.steady_from) == (Course.WARM_UP, 90)


def test_a_change_of_spread_alone_leaves_the_process_flat() -> None:
    samples = np.concatenate([noisy(np.ones(100), 0.001), noisy(np.ones(100), 0.008, seed=1)])
    found = steady_state(samples)
    assert found.change_points != ()
    assert (found.course, found.steady_from) == (Course.FLAT, 0)


def test_levels_within_one_percent_are_the_same_level() -> None:
    assert steady_state(noisy(steps((60, 1008.0), (60, 1000.0)), 1e-4)).course is Course.FLAT
    assert steady_state(noisy(steps((60, 1.012), (60, 1.0)), 1e-4)).course is Course.WARM_UP
    assert steady_state(noisy(steps((60, 1e-3), (60, 1.008e-3)), 1e-4)).course is Course.FLAT
    assert steady_state(noisy(steps((60, 1.0), (60, 1.012)), 1e-4)).course is Course.SLOW_DOWN


def test_returning_to_the_final_level_does_not_hide_what_was_between() -> None:
    found = steady_state(noisy(steps((30, 1.0), (30, 1.5), (60, 1.0))))
    assert (found.course, found.change_points, found.steady_from) == (Course.WARM_UP, (30, 60), 60)


def test_single_outliers_are_no_change() -> None:
    samples = noisy(np.full(120, 3e6))
    samples[[0, 10, 57, 58, 59, 100, 119]] *= 8
    assert steady_state(samples).change_points == ()
    samples = noisy(np.full(120, 3e-6))
    samples[[20, 22, 24, 26]] *= 8
    assert steady_state(samples).change_points == ()


@pytest.mark.parametrize("start", [0, 50, 116])
def test_four_outliers_in_a_row_are_a_change(start: int) -> None:
    samples = noisy(np.ones(120))
    samples[start : start + 3] *= 8
    assert steady_state(samples).change_points == ()
    samples[start + 3] *= 8
    assert steady_state(samples).change_points == tuple(p for p in (start, start + 4) if 0 < p < 120)


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_the_unit_of_time_does_not_matter(factor: float) -> None:
    assert change_points(noisy(steps((25, 1.4), (95, 1.0))) * factor) == [25]
    assert change_points(noisy(np.full(120, 5.0)) * factor) == []


def test_a_clock_with_coarse_ticks_makes_no_changes() -> None:
    for seed in range(10):
        ticks = np.round(noisy(np.full(120, 40.0), seed=seed))
        assert np.unique(ticks).size < 8
        assert change_points(ticks) == []
    assert change_points(np.round(noisy(steps((40, 60.0), (80, 40.0))))) == [40]


def test_equal_samples_are_flat() -> None:
    assert steady_state(np.full(50, 7.0)).course is Course.FLAT


def test_a_long_series_is_searched_in_groups() -> None:
    found = change_points(noisy(steps((400, 1.4), (1203, 1.0))))
    assert len(found) == 1
    assert abs(found[0] - 400) <= 9
    assert steady_state(noisy(np.ones(1603))).change_points == ()


def test_too_few_samples_say_so() -> None:
    found = steady_state(noisy(np.ones(19)))
    assert (found.course, found.steady_from, found.warnings) == (Course.FLAT, 0, (TooShortToClassify(19, 20),))
    assert steady_state(noisy(np.ones(20))).warnings == ()


def test_bad_samples_get_a_named_error() -> None:
    with pytest.raises(OneSample, match="torch: 1 samples"):
        steady_state([1.0], "torch")
    with pytest.raises(NotFinite, match="torch: figure 2"):
        steady_state([1.0, float("nan")], "torch")
    with pytest.raises(NotPositive, match="process: figure 1"):
        steady_state([0.0, 1.0])
    assert steady_state([1.0, 2.0]).course is Course.FLAT


def test_the_search_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steady_state(noisy(steps((25, 1.4), (95, 1.0))))


def test_a_process_figure_is_the_median_of_the_steady_part() -> None:
    samples = noisy(steps((25, 1.4), (95, 1.0)))
    figure = process_figure(samples, steady_state(samples))
    assert figure.value == pytest.approx(np.median(samples[25:]))
    assert figure.log_value == pytest.approx(np.log(np.median(samples[25:])))
    assert (figure.samples, figure.warnings) == (95, ())


def test_percentiles_say_when_they_rest_on_few_samples() -> None:
    samples = noisy(np.ones(100))
    steady = steady_state(samples)
    high = process_figure(samples, steady, quantile=0.95)
    assert high.log_value == pytest.approx(np.quantile(np.log(samples), 0.95))
    assert high.warnings == ()
    extreme = process_figure(samples, steady, quantile=0.99)
    assert extreme.warnings == (FewSamplesBeyond(0.99, 100),)
    assert process_figure(samples, steady, quantile=0.02).warnings == (FewSamplesBeyond(0.02, 100),)
    assert process_figure(samples[:6], steady).warnings == ()


def test_a_figure_without_a_steady_state_is_doubted() -> None:
    samples = noisy(steps((100, 1.0), (20, 1.3)))
    figure = process_figure(samples, steady_state(samples))
    assert figure.warnings == (NoSteadyState(),)
    assert figure.samples == 30


def test_throughput_is_items_over_time() -> None:
    samples = np.full(40, 2e6)
    time = process_figure(samples, steady_state(samples))
    assert throughput(time, 32).value == pytest.approx(32 / 2e-3)
    assert throughput(time, 32, seconds_per_unit=1.0).value == pytest.approx(32 / 2e6)
    assert throughput(time, 32).samples == 40
    with pytest.raises(NotPositive, match="items per call"):
        throughput(time, 0)


def test_a_figure_needs_two_steady_samples_and_a_quantile_inside() -> None:
    steady = steady_state([1.0, 2.0, 3.0])
    with pytest.raises(BadOption, match="quantile"):
        process_figure([1.0, 2.0, 3.0], steady, quantile=1.0)
    with pytest.raises(OneSample, match="torch: 1 steady samples"):
        process_figure([1.0], steady, whose="torch")
    assert process_figure([1.0, 2.0], steady).samples == 2


def test_the_change_points_are_those_of_the_cheapest_of_all_partitions() -> None:
    random = np.random.default_rng(0)
    found = []
    for _ in range(20):
        points = random.normal(size=12)
        for change in random.integers(1, 12, size=2):
            points[change:] += random.choice([0, 1000, 10**6])
        found.append(_cheapest_cuts(points))
        assert found[-1] == min(_partitions(12), key=lambda cuts: _cost(points, cuts))
    assert {len(cuts) for cuts in found} >= {0, 1, 2}


def _partitions(size: int) -> Iterator[list[int]]:
    """All cuts that leave segments of two or more."""
    for number in range(size // 2):
        for cuts in combinations(range(2, size - 1), number):
            if all(after - before >= 2 for before, after in pairwise((0, *cuts, size))):
                yield list(cuts)


def _cost(points: np.ndarray, cuts: list[int]) -> float:
    segments = [points[start:end] for start, end in pairwise((0, *cuts, points.size))]
    return sum(each.size * float(np.log(each.var() + 1e-6)) + 15 * float(np.log(points.size)) for each in segments)


@pytest.mark.parametrize("width", [10, 21, 24, 25, 29])
def test_quartiles_are_those_of_numpy_to_the_last_bit(width: int) -> None:
    """Also among samples that repeat."""
    drawn = np.random.default_rng(width)
    for rows in (drawn.normal(size=(200, width)), drawn.integers(0, 4, (200, width)).astype(np.float64)):
        assert np.array_equal(_quartiles(rows), np.quantile(rows, [0.25, 0.5, 0.75], axis=1))
