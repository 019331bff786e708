"""Changes of contestants and of the machine: where they are in a series, and in stores with known ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fairlap.history.change_points import FEWEST_RUNS, change_points
from fairlap.history.changes import Change
from fairlap.history.history_text import bisect_text
from fairlap.history.machine_drift import Control, machine_drift
from fairlap.history.model_history import history_of
from fairlap.history.trends import unversioned
from fairlap.store.errors import NoSuchRun
from fairlap.store.store import open_store
from hypothesis import given, settings
from hypothesis import strategies as st
from runs_for_rows import MACHINE
from stored_histories import ALL, NEW, OLD, Day, daily_run, stored

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


@pytest.mark.slow_but("contestants0")
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


COMMITS = [f"{day:040x}" for day in range(FEW, FEW + 60)]


def of_commit(day: int, branch: str, *, slower_from: int) -> Day:
    facts = {**MACHINE, "git revision": COMMITS[day], "git changes": "none", "git branch": branch}
    return daily_run(day, torch=lambda day: 1.05 if day >= slower_from else 1.0, facts=facts)


def test_a_change_lies_between_the_commits_of_two_runs_of_its_branch(tmp_path: Path) -> None:
    """Runs of another branch lie in between; together, the two look like one restless series."""
    days = [
        of_commit(day, "main", slower_from=25) if day % 2 else of_commit(day, "trial", slower_from=DAYS)
        for day in range(DAYS)
    ]
    stored(tmp_path / "s", days)
    with open_store(tmp_path / "s", reading=True) as store:
        [main] = history_of(store, "mlp", on="torch", branch="main", margin=0.01).trends
        [trial] = history_of(store, "mlp", on="torch", branch="trial", margin=0.01).trends
    assert (len(main.trend.runs), len(trial.trend.runs)) == (DAYS // 2, DAYS // 2)
    assert not trial.changes
    [change] = main.changes
    assert change.commits == (COMMITS[23], COMMITS[25])
    assert COMMITS[23][:10] in bisect_text(change)
    assert bisect_text(replace(change, commits=("", COMMITS[25]))) == ""
    assert bisect_text(replace(change, commits=(COMMITS[25], COMMITS[25]))) == ""
    assert bisect_text(replace(change, cause="machine")) == ""
    assert bisect_text(replace(change, versions=(OLD, NEW))) == ""  # a release is no commit of the folder


def test_a_branch_without_runs_is_an_error_with_those_there_are(tmp_path: Path) -> None:
    stored(tmp_path / "s", [of_commit(0, "main", slower_from=1)])
    with open_store(tmp_path / "s", reading=True) as store, pytest.raises(NoSuchRun, match="main"):
        history_of(store, "mlp", branch="mian", margin=0.01)


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
