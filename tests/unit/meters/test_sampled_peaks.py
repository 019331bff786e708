"""The peak power is the highest reading, or the steepest rise of a counter over a time that resolves it."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.meters.energy import peak_power_w

MS = 1_000_000


def test_of_a_power_sensor_the_highest_reading_counts() -> None:
    assert peak_power_w(np.array([0, 1, 2]) * MS, np.array([80.0, 120.0, 90.0]), counter=False) == 120.0
    assert peak_power_w(np.array([]), np.array([]), counter=False) is None


def test_of_a_counter_the_steepest_rise_over_fifty_milliseconds_counts() -> None:
    times = np.arange(0, 400, 25) * MS
    watts = np.where(times < 200 * MS, 40.0, 100.0)
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * 0.025)])
    assert peak_power_w(times, joules, counter=True) == pytest.approx(100.0)
    joules[8] += 1.0  # one reading late by a step of the counter: 40 W more over 25 ms, 20 W over 50 ms
    steep = peak_power_w(times, joules, counter=True)
    assert steep is not None
    assert steep < 130


def test_a_counter_that_wraps_rises_on() -> None:
    times, joules = np.array([0, 60, 120]) * MS, np.array([98.0, 4.0, 10.0])
    assert peak_power_w(times, joules, counter=True, wraps_at=100.0) == pytest.approx(100.0)


def test_too_few_readings_give_no_peak() -> None:
    assert peak_power_w(np.array([0, 20]) * MS, np.array([1.0, 2.0]), counter=True) is None
