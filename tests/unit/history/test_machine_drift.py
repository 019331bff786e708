"""The drift of the machine, from contestants that did not change."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.history.machine_drift import Control, machine_drift
from hypothesis import given, settings
from hypothesis import strategies as st

RUNS = 60
EVERY = np.arange(RUNS)


def step(size: float, at: int) -> np.ndarray:
    stepped: np.ndarray = np.where(np.arange(RUNS) >= at, size, 0.0)
    return stepped


def centred(drift: np.ndarray) -> np.ndarray:
    shifted: np.ndarray = drift - drift[0]
    return shifted


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_drift_that_all_controls_share_is_found_exactly(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, 0.05, RUNS)
    found = machine_drift([Control(place, EVERY, drift + place) for place in range(count)], RUNS)
    assert centred(found) == pytest.approx(centred(drift), abs=1e-6)


def test_one_control_that_changed_alone_does_not_move_the_drift_of_three() -> None:
    noise = np.random.default_rng(0).normal(0, 0.001, (3, RUNS))
    noise[0] += step(0.2, 30)
    found = machine_drift([Control(place, EVERY, own) for place, own in enumerate(noise)], RUNS)
    assert abs(np.median(found[30:]) - np.median(found[:30])) < 0.002


def test_a_control_that_got_another_version_adds_no_step() -> None:
    drift = step(0.1, 20)
    old, new = EVERY < 40, EVERY >= 40
    upgraded = [Control("old", EVERY[old], drift[old]), Control("new", EVERY[new], drift[new] + 0.3)]
    steady = Control("steady", EVERY, drift)
    assert centred(machine_drift([*upgraded, steady], RUNS)) == pytest.approx(drift, abs=1e-6)
    # Without another one that ties the versions together, the drift goes on from where it was.
    assert centred(machine_drift(upgraded, RUNS)) == pytest.approx(drift, abs=1e-6)


def test_runs_without_a_control_have_no_drift() -> None:
    some = EVERY[10:50]
    found = machine_drift([Control("a", some, np.zeros(40)), Control("once", EVERY[:1], np.zeros(1))], RUNS)
    assert np.isfinite(found).tolist() == [10 <= run < 50 for run in EVERY]
    assert np.isnan(machine_drift([], RUNS)).all()
