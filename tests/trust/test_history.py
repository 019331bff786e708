"""Changes over time on recorded noise, at a size for every change; `make trust-history` runs the whole."""

from __future__ import annotations

from fairlap.history.change_points import change_points

from .figure import needed_share, seeded
from .history.experiments import BUSY, causes_right, false_alarms, found_within_three_runs
from .history.recording import recorded

HISTORIES = 12
_MOST_FALSE = 0.001


def test_recorded_noise_is_of_three_contestants_with_as_many_runs_each() -> None:
    noise = recorded()
    assert len(noise) == 3
    assert {each.size for each in noise.values()} == {next(iter(noise.values())).size}
    assert min(each.min() for each in noise.values()) > 0


def test_at_most_one_change_in_a_thousand_points_is_claimed_where_nothing_changed() -> None:
    claims = false_alarms(change_points, seeded("short"), HISTORIES, BUSY, controlled=True)
    assert claims.points >= 3_000
    assert claims.places <= _MOST_FALSE * claims.points


def test_a_step_of_five_percent_is_found_within_three_runs() -> None:
    found, trials = found_within_three_runs(change_points, seeded("short"), HISTORIES, BUSY, 0.05, controlled=True)
    assert found / trials >= needed_share(trials, 0.9)


def test_a_step_has_its_cause() -> None:
    for of_machine in (False, True):
        right = causes_right(seeded("short"), HISTORIES, BUSY, 0.10, of_machine=of_machine)
        assert right / HISTORIES >= needed_share(HISTORIES, 0.9)
