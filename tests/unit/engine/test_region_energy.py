"""Energy of a region from readings whose answer is known, and every reason why a region has none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.engine._native import ReadingState
from fairlap.engine.sampling.joules import Energy
from fairlap.engine.sampling.region_energy import energy_of_counter, energy_of_power
from sensor_rows import MS, sensor_rows, with_state

TIGHT = 1e-9


def power_of(rows: npt.NDArray[np.void], begin_ms: int, end_ms: int, **sensor: float) -> Energy:
    return energy_of_power(rows, begin_ms * MS, end_ms * MS, **sensor)  # type: ignore[arg-type]


def counted(rows: npt.NDArray[np.void], begin_ms: int, end_ms: int, wraps_at: float = 0.0) -> Energy:
    return energy_of_counter(rows, begin_ms * MS, end_ms * MS, wraps_at)


def stepping(
    watts: float, until_ms: int, poll_ms: int, start_j: float = 0.0, wraps_at: float = 0.0
) -> npt.NDArray[np.void]:
    """Read a counter that shows, in steps of 100 ms, the energy of a constant power."""
    times_ms = np.arange(0, until_ms + 1, poll_ms)
    joules = start_j + watts * (times_ms // 100 * 100) / 1000
    return sensor_rows(times_ms, joules % wraps_at if wraps_at else joules)


def bounds_of(energy: Energy) -> tuple[float, float]:
    assert energy.low_j is not None
    assert energy.high_j is not None
    return energy.low_j, energy.high_j


def test_constant_power_integrates_to_power_times_time_with_no_width() -> None:
    energy = power_of(sensor_rows([0, 100, 200, 300], 80.0), 50, 275)
    assert energy.unresolved_because == ""
    assert energy.joules == pytest.approx(80 * 0.225, abs=TIGHT)
    assert bounds_of(energy) == pytest.approx((80 * 0.225, 80 * 0.225), abs=TIGHT)
    assert energy.readings == 2


@pytest.mark.parametrize(("begin_ms", "end_ms"), [(100, 900), (130, 870), (101, 199)])
def test_a_ramp_integrates_exactly_between_any_two_bounds(begin_ms: int, end_ms: int) -> None:
    times_ms = np.arange(0, 1001, 50)
    energy = power_of(sensor_rows(times_ms, times_ms), begin_ms, end_ms)
    exact_j = (end_ms**2 - begin_ms**2) / 2 / 1000
    assert energy.joules == pytest.approx(exact_j, abs=TIGHT)
    low_j, high_j = bounds_of(energy)
    assert low_j < exact_j < high_j


def test_the_interval_holds_any_power_that_stays_between_its_readings() -> None:
    energy = power_of(sensor_rows([0, 100, 200], [100, 300, 100]), 0, 200)
    assert energy.joules == pytest.approx(40, abs=TIGHT)
    assert bounds_of(energy) == pytest.approx((20, 60), abs=TIGHT)


def test_the_gain_and_the_age_of_readings_widen_the_interval_and_leave_the_value() -> None:
    rows = sensor_rows([0, 100, 200], [100, 200, 200])
    plain = power_of(rows, 0, 200)
    low_j, high_j = bounds_of(plain)
    gain = power_of(rows, 0, 200, gain_share=0.05)
    assert bounds_of(gain) == pytest.approx((0.95 * low_j, 1.05 * high_j), abs=TIGHT)
    stale = power_of(rows, 0, 200, stale_ns=50 * MS)
    assert bounds_of(stale) == pytest.approx((low_j - 5, high_j + 5), abs=TIGHT)
    assert plain.joules == gain.joules == stale.joules


def test_what_the_readings_do_not_enclose_is_unresolved_and_never_0() -> None:
    rows, none = sensor_rows([100, 200], 50.0), sensor_rows([], [])
    failed = with_state(with_state(sensor_rows([0, 9], 1.0), 0, ReadingState.failed), 1, ReadingState.failed)
    for energy, reason in (
        (power_of(none, 0, 1), "no readings"),
        (counted(none, 0, 1), "no readings"),
        (power_of(rows, 50, 150), "after the start of the region"),
        (power_of(rows, 150, 250), "before the end of the region"),
        (power_of(rows, 150, 150), "no length"),
        (power_of(failed, 1, 2), "every reading failed"),
    ):
        assert reason in energy.unresolved_because
        assert (energy.joules, energy.low_j, energy.high_j, energy.readings) == (None, None, None, 0)


def test_a_region_without_a_reading_inside_is_unresolved_with_the_range_seen_around_it() -> None:
    energy = power_of(sensor_rows([0, 100], [50, 150]), 40, 60)
    assert "too few readings: 0 inside" in energy.unresolved_because
    assert energy.joules is None
    assert bounds_of(energy) == pytest.approx((1, 3), abs=TIGHT)


def test_a_failed_reading_is_dropped_and_a_gap_of_over_a_second_is_unresolved() -> None:
    def failed_in_the_middle_of(gap_ms: int) -> Energy:
        rows = sensor_rows([0, gap_ms // 2, gap_ms, gap_ms + 100], 10.0)
        return power_of(with_state(rows, 1, ReadingState.failed), 50, gap_ms + 50)

    assert failed_in_the_middle_of(1000).joules == pytest.approx(10, abs=TIGHT)
    too_long = failed_in_the_middle_of(1200)
    assert "a gap of 1200 ms" in too_long.unresolved_because
    assert too_long.joules is None


def test_a_lost_source_leaves_unresolved_what_ends_later_and_not_what_ended_before() -> None:
    rows = with_state(sensor_rows([0, 100, 200, 300], 10.0), 3, ReadingState.source_lost)
    assert power_of(rows, 50, 150).joules == pytest.approx(1, abs=TIGHT)
    assert "was lost" in power_of(rows, 50, 350).unresolved_because
    assert "was lost" in counted(rows, 50, 350).unresolved_because


def test_a_region_that_may_lie_between_two_windows_of_the_sensor_is_unresolved_with_the_range_around_it() -> None:
    rows = sensor_rows([0, 25, 50, 75, 200], [50, 50, 90, 90, 90])
    windows = {"period_ns": 100 * MS, "window_ns": 25 * MS}
    between = power_of(rows, 20, 80, **windows)
    assert "may have seen none of it" in between.unresolved_because
    assert between.joules is None
    low_j, high_j = bounds_of(between)
    assert low_j >= 3.0
    assert high_j <= 5.4
    assert power_of(rows, 20, 95, **windows).unresolved_because == ""


@pytest.mark.parametrize(("begin_ms", "end_ms"), [(300, 1500), (333, 1477), (250, 450)])
def test_a_counter_that_is_read_often_is_exact_for_constant_power(begin_ms: int, end_ms: int) -> None:
    energy = counted(stepping(200, 2000, 1, start_j=17), begin_ms, end_ms)
    exact_j = 200 * (end_ms - begin_ms) / 1000
    assert energy.unresolved_because == ""
    assert energy.joules == pytest.approx(exact_j, abs=TIGHT)
    low_j, high_j = bounds_of(energy)
    assert low_j <= exact_j <= high_j
    assert high_j - low_j <= 2 * 200 * 0.1 + TIGHT  # a step at each end


@pytest.mark.parametrize("poll_ms", [1, 7, 30, 90, 130, 250])
def test_however_seldom_a_counter_is_read_its_interval_holds_the_truth(poll_ms: int) -> None:
    rows = stepping(100, 6000, poll_ms)
    for begin_ms in range(500, 1500, 37):
        for length_ms in (600, 1111, 3000):
            energy = counted(rows, begin_ms, begin_ms + length_ms)
            low_j, high_j = bounds_of(energy)
            assert low_j - TIGHT <= 100 * length_ms / 1000 <= high_j + TIGHT
            assert energy.unresolved_because == ""
            assert energy.joules is not None
            assert low_j <= energy.joules <= high_j


def test_a_counter_may_wrap_more_than_once() -> None:
    rows = stepping(200, 3000, 10, start_j=40, wraps_at=150)
    assert counted(rows, 200, 2700, wraps_at=150).joules == pytest.approx(500, abs=1e-6)


def test_a_counter_that_goes_backwards_without_a_wrap_was_reset_and_is_unresolved() -> None:
    rows = stepping(200, 1000, 10, start_j=500)
    rows["value"][50:] -= 500
    energy = counted(rows, 300, 800)
    assert "went backwards" in energy.unresolved_because
    assert energy.joules is None


def test_a_region_shorter_than_a_step_is_unresolved_with_what_its_steps_still_bound() -> None:
    energy = counted(stepping(200, 1000, 10), 420, 440)
    assert "no step of the counter is wholly inside" in energy.unresolved_because
    assert energy.joules is None
    assert bounds_of(energy) == pytest.approx((0, 20), abs=TIGHT)


def test_a_counter_without_steps_around_the_region_is_unresolved() -> None:
    rows = stepping(200, 1000, 10)
    for begin_ms, end_ms, reason in ((20, 600, "no step before the region"), (300, 1000, "no step after the region")):
        energy = counted(rows, begin_ms, end_ms)
        assert reason in energy.unresolved_because
        assert energy.joules is None
    still = counted(sensor_rows([0, 100, 200], 5.0), 50, 150)
    assert (still.joules, still.low_j, still.high_j) == (None, None, None)


def test_readings_out_of_order_are_refused_since_they_are_not_of_one_field() -> None:
    with pytest.raises(ValueError, match="order of time"):
        power_of(sensor_rows([10, 5, 20], 1.0), 11, 12)
