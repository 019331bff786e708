"""Changes of contestants and of the machine, in stores with known ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.history.changes import Change
from fairlap.history.model_history import history_of
from fairlap.history.trends import unversioned
from fairlap.store.errors import NoSuchRun
from fairlap.store.store import open_store
from runs_for_rows import MACHINE
from stored_histories import ALL, NEW, OLD, daily_run, stored

DAYS = 40
FEW = 12


def changes(path: Path, on: str = "", margin: float = 0.01) -> list[Change]:
    with open_store(path, reading=True) as store:
        [found] = history_of(store, "mlp", on=on, margin=margin).trends
    return list(found.changes)


def test_a_slower_release_is_dated_and_sized_and_named(tmp_path: Path) -> None:
    runs = [daily_run(day, torch=lambda day: 1.05 if day >= 25 else 1.0, upgraded_on=25) for day in range(DAYS)]
    ids = stored(tmp_path / "s", runs)
    [change] = changes(tmp_path / "s")
    assert (change.cause, change.contestants, change.versions) == ("contestant", ("torch",), (OLD, NEW))
    assert (change.run, change.run_before) == (ids[25], ids[24])
    assert change.began_at.startswith("2026-01-26")
    assert change.low is not None
    assert change.high is not None
    assert change.low < 1.05 < change.high
    assert change.high - change.low < 0.01
    assert set(change.controls) == {"jax", "onnxruntime"}


def test_when_all_move_together_it_is_the_machine(tmp_path: Path) -> None:
    slower = {**MACHINE, "kernel": "6.8"}
    runs = [
        daily_run(day, machine=lambda day: 1.08 if day >= 20 else 1.0, facts=slower if day >= 20 else MACHINE)
        for day in range(DAYS)
    ]
    ids = stored(tmp_path / "s", runs)
    [change] = changes(tmp_path / "s", on="torch")
    assert (change.cause, change.run) == ("machine", ids[20])
    assert set(change.contestants) == {"torch", "jax", "onnxruntime"}
    assert change.facts == ("kernel 6.1 -> 6.8",)
    assert 1.06 < change.ratio < 1.10


def test_a_release_and_the_machine_that_change_on_one_day_are_two_changes(tmp_path: Path) -> None:
    runs = [
        daily_run(
            day,
            torch=lambda day: 0.9 if day >= 20 else 1.0,
            machine=lambda day: 1.1 if day >= 20 else 1.0,
            upgraded_on=20,
        )
        for day in range(DAYS)
    ]
    stored(tmp_path / "s", runs)
    found = {change.cause: change for change in changes(tmp_path / "s", on="torch")}
    assert found.keys() == {"contestant", "machine"}
    assert 0.89 < found["contestant"].ratio < 0.91
    assert "torch" not in found["machine"].contestants


def test_without_another_contestant_the_cause_is_unknown(tmp_path: Path) -> None:
    runs = [
        daily_run(day, torch=lambda day: 1.2 if day >= 20 else 1.0, contestants=("torch",), upgraded_on=20)
        for day in range(DAYS)
    ]
    stored(tmp_path / "s", runs)
    [change] = changes(tmp_path / "s")
    assert (change.cause, change.controls, change.versions) == ("unknown", (), (OLD, NEW))


def test_nothing_is_claimed_where_nothing_changed(tmp_path: Path) -> None:
    stored(tmp_path / "s", [daily_run(day) for day in range(DAYS)])
    assert changes(tmp_path / "s", margin=0.0) == []


def test_a_change_below_the_margin_is_left_out(tmp_path: Path) -> None:
    stored(tmp_path / "s", [daily_run(day, torch=lambda day: 1.05 if day >= 20 else 1.0) for day in range(DAYS)])
    assert changes(tmp_path / "s", margin=0.10) == []


@pytest.mark.parametrize("contestants", [("torch",), ALL])
def test_from_the_smallest_step_on_a_step_is_found_in_this_very_series(
    tmp_path: Path, contestants: tuple[str, ...]
) -> None:
    def slower(ratio: float) -> list[Change]:
        runs = [
            daily_run(day, torch=lambda day: ratio if day >= FEW - 3 else 1.0, contestants=contestants)
            for day in range(FEW)
        ]
        path = tmp_path / f"{ratio}"
        stored(path, runs)
        return [each for each in changes(path, on="torch", margin=0.0) if "torch" in each.contestants]

    stored(tmp_path / "s", [daily_run(day, contestants=contestants) for day in range(FEW)])
    with open_store(tmp_path / "s", reading=True) as store:
        [found] = history_of(store, "mlp", on="torch", margin=0.0).trends
    [step] = found.smallest_steps
    assert step.ratio is not None
    assert [len(slower(1 + factor * (step.ratio - 1))) for factor in (0.95, 1.0, 1.5)] == [0, 1, 1]


def test_too_few_runs_have_no_smallest_step(tmp_path: Path) -> None:
    stored(tmp_path / "s", [daily_run(day) for day in range(7)])
    with open_store(tmp_path / "s", reading=True) as store:
        [found] = history_of(store, "mlp", on="torch", margin=0.01).trends
    assert [each.ratio for each in found.smallest_steps] == [None]


def test_two_machines_are_two_trends(tmp_path: Path) -> None:
    other = {**MACHINE, "cpu model": "another"}
    stored(tmp_path / "s", [daily_run(day, facts=other if day % 2 else MACHINE) for day in range(6)])
    with open_store(tmp_path / "s", reading=True) as store:
        found = history_of(store, "mlp", on="torch", margin=0.01).trends
    assert [len(each.trend.runs) for each in found] == [3, 3]


def test_versions_share_a_series_unless_they_raced_each_other(tmp_path: Path) -> None:
    days = [daily_run(day, contestants=(f"torch=={OLD if day < 2 else NEW}", "jax")) for day in range(4)]
    stored(tmp_path / "apart", days)
    assert lengths(tmp_path / "apart") == {"torch": 4, "jax": 4}
    stored(tmp_path / "together", [*days, daily_run(5, contestants=(f"torch=={OLD}", f"torch=={NEW}"))])
    assert lengths(tmp_path / "together") == {f"torch=={OLD}": 3, f"torch=={NEW}": 3, "jax": 4}


def lengths(path: Path) -> dict[str, int]:
    with open_store(path, reading=True) as store:
        [found] = history_of(store, "mlp", margin=0.01).trends
    return {series.contestant: len(series.points) for series in found.trend.series}


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("torch", "torch"),
        ("torch==2.13.0", "torch"),
        ("torch==2.13.0:compile", "torch:compile"),
        ("torch==2.13.0 (bf16)", "torch (bf16)"),
        ("./worker", "./worker"),
    ],
)
def test_a_name_loses_its_version_only(name: str, without: str) -> None:
    assert unversioned(name) == without


@pytest.mark.parametrize(
    ("model", "on", "since", "named"),
    [
        ("mlq", "", "", "mlp"),
        ("mlp", "tensorflow", "", "torch"),
        ("mlp", "", "2027-01-01T00:00:00+00:00", "mlp"),
    ],
)
def test_what_is_not_in_the_store_is_an_error_with_what_is(
    tmp_path: Path, model: str, on: str, since: str, named: str
) -> None:
    stored(tmp_path / "s", [daily_run(0)])
    with open_store(tmp_path / "s", reading=True) as store, pytest.raises(NoSuchRun, match=named):
        history_of(store, model, on=on, since=since, margin=0.01)
