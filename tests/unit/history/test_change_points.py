"""Change points in series with known places."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.history.change_points import FEWEST_RUNS, change_points
from hypothesis import given, settings
from hypothesis import strategies as st


def noise(runs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.01, runs)


def test_every_planted_step_is_found_at_its_run() -> None:
    logs = noise(120)
    logs[40:] += 0.06
    logs[90:] -= 0.09
    assert change_points(logs) == [40, 90]


def test_single_slow_runs_are_no_change() -> None:
    logs = noise(120)
    logs[[20, 50, 51, 80]] += 0.5
    assert change_points(logs) == []


@pytest.mark.parametrize("runs", [0, 1, FEWEST_RUNS - 1])
def test_a_short_series_has_no_change(runs: int) -> None:
    assert change_points(np.linspace(0, 5, runs)) == []


def test_series_without_noise_are_judged_too() -> None:
    assert change_points(np.zeros(50)) == []
    assert change_points(np.repeat([0.0, 0.1], 25)) == [25]


@settings(max_examples=50)
@given(st.integers(0, 1000), st.floats(0.1, 10), st.floats(-20, 20))
def test_neither_the_unit_nor_the_size_of_the_noise_matters(seed: int, scale: float, level: float) -> None:
    logs = noise(60, seed)
    logs[30:] += 0.05
    assert change_points(scale * logs + level) == change_points(logs)
