"""Energy of one repeat of some work, from a counter whose ticks are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.engine._native import ReadingState
from fairlap.engine.sampling.energy import RepeatedEnergy, Trial, energy_of_repeats, power_between_ticks
from sensor_rows import MS, sensor_rows, with_state

Rows = npt.NDArray[np.void]


def trial(begin_ms: int, end_ms: int, repeats: int) -> Trial:
    return Trial(begin_ms * MS, end_ms * MS, repeats)


TRIALS = (trial(1000, 3000, 400), trial(3530, 5530, 400), trial(6010, 8010, 400))


def ticking(watts: float, until_ms: int, look_ms: int, phase_ms: int = 0, wraps_at: float = 0.0) -> Rows:
    """Read a counter of a constant power that ticks every 100 ms, ``phase_ms`` after the full ones."""
    times_ms = np.arange(0, until_ms + 1, look_ms)
    joules = watts * ((times_ms + 100 - phase_ms) // 100 * 100 + phase_ms) / 1000
    return sensor_rows(times_ms, joules % wraps_at if wraps_at else joules)


def steady(watts: float, until_ms: int) -> Rows:
    return sensor_rows(np.arange(0, until_ms + 1, 25), watts)


def repeated(
    trials: Sequence[Trial], counter: Rows, power: Rows | None = None, *, wraps_at: float = 0.0, gain_share: float = 0.0
) -> RepeatedEnergy:
    return energy_of_repeats(trials, counter, wraps_at, power, gain_share=gain_share, stale_ns=0)


@pytest.mark.parametrize("look_ms", [1, 10, 25])
@pytest.mark.parametrize("phase_ms", [0, 30, 77])
def test_power_between_ticks_is_as_exact_as_the_ticks_are_seen(look_ms: int, phase_ms: int) -> None:
    counter = ticking(200, 4000, look_ms, phase_ms)
    for begin_ms in range(500, 640, 7):
        begin_ns, end_ns = begin_ms * MS, (begin_ms + 2000) * MS
        power = power_between_ticks(counter, begin_ns, end_ns, 0.0)
        assert begin_ns <= power.begin_ns
        assert power.end_ns <= end_ns
        assert power.end_ns - power.begin_ns >= 1700 * MS  # at most a tick and a look are lost at each end
        assert abs(power.watts / 200 - 1) <= power.uncertainty_share + 1e-12
        assert power.uncertainty_share <= look_ms / 1000 / (1.7 - 0.025) + 1e-12


def test_the_energy_of_a_repeat_is_within_its_bound_and_the_bound_has_every_part() -> None:
    energy = repeated(TRIALS, ticking(200, 9000, 10), steady(200, 9000), gain_share=0.05)
    assert energy.unresolved_because == ""
    assert energy.seconds == pytest.approx(6, abs=1e-9)
    assert energy.low_j is not None
    assert energy.high_j is not None
    assert energy.joules is not None
    assert energy.low_j <= 1.0 <= energy.high_j  # 200 W for 2 s, 400 times
    assert energy.alignment_share is not None
    assert energy.spread_share is not None
    assert energy.disagreement_share is not None
    assert energy.joules == pytest.approx(1, abs=energy.alignment_share + energy.spread_share)
    assert 0 < energy.alignment_share < 0.01
    parts = energy.alignment_share + energy.spread_share + energy.disagreement_share + 0.05
    assert (energy.high_j - energy.low_j) / 2 / energy.joules == pytest.approx(parts, abs=1e-9)


def test_trials_that_differ_and_a_counter_that_the_integral_contradicts_widen_the_bound() -> None:
    counter = ticking(200, 9000, 10)
    late = counter["time_ns"] > 6000 * MS
    counter["value"][late] += (counter["time_ns"][late] / 1e9 - 6) * 40
    spread = repeated(TRIALS, counter)
    assert spread.unresolved_because == ""
    assert spread.joules == pytest.approx((1.0 + 1.0 + 1.2) / 3, abs=0.01)
    # Student's t of two degrees of freedom is 4.303.
    assert spread.spread_share == pytest.approx(4.303 * 0.11547 / 3**0.5 / 1.0667, abs=0.02)
    assert spread.disagreement_share is None
    contradicted = repeated(TRIALS, ticking(200, 9000, 10), steady(220, 9000))
    assert contradicted.disagreement_share == pytest.approx(0.1, abs=0.01)
    assert contradicted.high_j is not None
    assert contradicted.high_j >= 1.1


def test_each_reason_leaves_the_energy_unresolved() -> None:
    counter = ticking(200, 9000, 10)
    reset = counter.copy()
    reset["value"][len(reset) // 2 :] -= 700
    for trials, counted, reason in (
        ([trial(500, 2500, 9), trial(3000, 5000, 9)], counter, "less than 5 s"),
        ([trial(500, 6500, 9)], counter, "one trial"),
        ([trial(500, 650, 9), trial(1000, 8000, 9)], counter, "fewer than twice"),
        ([trial(500, 4000, 0), trial(4500, 8000, 9)], counter, "repeated nothing"),
        ([], counter, "less than 5 s"),
        (TRIALS, sensor_rows([], []), "no readings"),
        (TRIALS, reset, "went backwards"),
        (TRIALS, with_state(counter, 200, ReadingState.source_lost), "was lost"),
    ):
        energy = repeated(trials, counted)
        assert reason in energy.unresolved_because
        assert (energy.joules, energy.low_j, energy.high_j) == (None, None, None)


def test_a_counter_may_wrap_between_and_inside_trials() -> None:
    energy = repeated(TRIALS, ticking(200, 9000, 10, wraps_at=170), wraps_at=170)
    assert energy.unresolved_because == ""
    assert energy.low_j is not None
    assert energy.high_j is not None
    assert energy.low_j <= 1.0 <= energy.high_j
