"""How often a field is new, and what it is an average of, from readings whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.engine._native import Lane, Readings, ReadingState, TelemetrySource
from fairlap.engine.sampling.field_calibration import (
    FieldCalibration,
    Unknown,
    averaging_window,
    fast_period_for,
    field_calibrations,
    publication_period,
)
from sensor_rows import sensor_rows, with_state

Rows = npt.NDArray[np.void]
Values = npt.NDArray[np.float64]


def published_every(period_ms: int, until_ms: int, value_of: Callable[[Values], Any]) -> Rows:
    """Look every millisecond at a value that is new every so often."""
    times_ms = np.arange(until_ms + 1)
    return sensor_rows(times_ms, value_of((times_ms // period_ms * period_ms).astype(float)))


def climbing(at_ms: Values) -> Values:
    return at_ms


def load(at_ms: Values) -> Values:
    """Run and rest for times that are never the same: what repeats is explained by longer windows too."""
    turn = np.arange(200)
    runs_ms = 30 + 17 * (turn * 7 % 11)
    ends_ms = np.cumsum(runs_ms + 40 + 13 * (turn * 5 % 13))
    begins_ms = np.append(0, ends_ms[:-1])
    now = np.searchsorted(ends_ms, at_ms, "right")
    return ((at_ms >= 0) & (at_ms < begins_ms[now] + runs_ms[now])).astype(float)


def mean_load(to_ms: Values, window_ms: int) -> Values:
    within = (np.arange(1000) + 0.5) / 1000
    means: Values = load(to_ms[:, None] - window_ms * within).mean(axis=1)
    return means


def known_load(until_ms: int) -> Rows:
    times_ms = np.arange(until_ms + 1)
    return sensor_rows(times_ms, load(times_ms.astype(float)))


def why_unknown(observe: Callable[..., float], *rows: Rows) -> str:
    with pytest.raises(Unknown) as unknown:
        observe(*rows)
    return str(unknown.value)


def test_a_publication_period_is_the_distance_between_new_values_also_where_some_repeat_the_one_before() -> None:
    assert publication_period(published_every(100, 1000, climbing)) == pytest.approx(0.1, abs=0.001)
    repeating = published_every(100, 2000, lambda at_ms: np.floor(at_ms / 100 * 2 / 3 + 1e-9))
    assert publication_period(repeating) == pytest.approx(0.1, abs=0.001)


def test_a_period_that_cannot_be_seen_is_unknown_with_the_reason() -> None:
    assert "changed 0 times in 1000 ms" in why_unknown(publication_period, published_every(100, 1000, np.ones_like))
    assert "every look" in why_unknown(publication_period, published_every(1, 100, climbing))
    assert "fewer than twice" in why_unknown(publication_period, sensor_rows([], []))


@pytest.mark.parametrize("window_ms", [25, 50, 100])
def test_the_window_of_a_sensor_is_found_from_a_load_that_is_known_whatever_its_unit_and_offset(window_ms: int) -> None:
    published = published_every(103, 8000, lambda at_ms: 40_000 + 250_000 * mean_load(at_ms, window_ms))
    assert averaging_window(published, known_load(8000)) == pytest.approx(window_ms / 1000, rel=0.03, abs=0.001)


def test_a_window_is_unknown_where_nothing_moved_nothing_fits_or_too_little_was_watched() -> None:
    still = published_every(100, 2000, np.ones_like)
    assert "hardly changed" in why_unknown(averaging_window, still, known_load(2000))
    noise = published_every(100, 6000, lambda at_ms: (at_ms.astype(np.uint32) * np.uint32(2654435761)) >> np.uint32(8))
    assert "no average" in why_unknown(averaging_window, noise, known_load(6000))
    assert "too few" in why_unknown(averaging_window, sensor_rows([], []), sensor_rows([], []))

    def turning(at_ms: Values) -> Values:
        return (at_ms % 200 < 70).astype(float)

    times_ms = np.arange(4001)
    turns = sensor_rows(times_ms, turning(times_ms.astype(float)))
    mean = published_every(23, 4000, lambda at_ms: turning(at_ms[:, None] + 1000 - 0.5 * np.arange(100)).sum(axis=1))
    assert "repeats itself" in why_unknown(averaging_window, mean, turns)


def test_windows_that_explain_a_few_publications_equally_well_are_unknown() -> None:
    published = published_every(103, 1000, lambda at_ms: mean_load(at_ms, 2))
    assert "look alike" in why_unknown(averaging_window, published, known_load(1000))


def found_for(lane: str, period_s: float | None) -> FieldCalibration:
    return FieldCalibration("nvml:0", "power_instant_w", lane, 1, 1.0, 1.0, period_s, "", None, "")


def test_the_fast_lane_takes_a_quarter_of_the_shortest_period_that_its_sources_publish_at() -> None:
    assert fast_period_for([found_for("fast", 0.08)]) == 0.02
    assert fast_period_for([found_for("fast", 0.08), found_for("slow", 0.004), found_for("fast", 0.0002)]) == 0.001
    assert fast_period_for([found_for("fast", None), found_for("slow", 0.004)]) is None


def test_each_field_that_is_present_is_judged_and_an_average_by_the_field_it_is_the_average_of() -> None:
    fields = [
        SimpleNamespace(name="power_instant_w", absent_because="", lane=Lane.fast),
        SimpleNamespace(name="power_average_w", absent_because="", lane=Lane.slow),
        SimpleNamespace(name="temperature_c", absent_because="not supported", lane=Lane.rare),
        SimpleNamespace(name="energy_j", absent_because="", lane=Lane.slow),
    ]
    source = cast(TelemetrySource, SimpleNamespace(name="nvml:0", absent_because="", fields=fields))
    failed = with_state(sensor_rows([0], [1.0]), 0, ReadingState.failed)
    average = published_every(100, 8000, lambda at_ms: mean_load(at_ms, 50))
    average["width_ns"] = 2000
    average["width_ns"][7] = 9000
    of_fields = {0: known_load(8000), 1: average, 3: failed}
    for number, rows in of_fields.items():
        rows["field"] = number
    table = cast(Readings, np.concatenate(list(of_fields.values())))
    found = field_calibrations([source], table)
    assert [each.field for each in found] == ["power_instant_w", "power_average_w", "energy_j"]
    instant, mean, energy = found
    assert (mean.source, mean.lane, mean.calls) == ("nvml:0", "slow", 8001)
    assert (mean.call_ns, mean.worst_call_ns) == (2000, 9000)
    assert mean.period_s == pytest.approx(0.1, abs=0.001)
    assert mean.window_s == pytest.approx(0.05, rel=0.03, abs=0.001)
    assert (mean.period_unknown_because, mean.window_unknown_because) == ("", "")
    assert instant.window_s is None
    assert "a known load would show it" in instant.window_unknown_because
    assert (energy.calls, energy.call_ns, energy.worst_call_ns, energy.period_s) == (0, None, None, None)
