"""A race with data: fed contestants finish with their figures, those that go wrong when fed are found."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_installed import install_example
from fairlap.cli import compare_running
from fairlap.errors import WrongRequest
from fairlap.ledger.rows_of_run import rows_of_run
from fairlap.pipelines import data as fed_data
from fairlap.race.laps import Lap
from fairlap.race.naming import contestants_named
from fairlap.race.plan import Limits, Measuring, Plan, Work, draw_plan
from fairlap.race.race import Race
from fairlap.race.results import results_of
from fairlap.race.saving import SavedRun
from fairlap.race.telling import text_of
from fairlap.race.worker_process import MeasuredLaps, WorkerProcess

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc"),
]

QUICK = Limits(start_s=30, prepare_s=30, answer_s=30, measure_s=30)


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def planned(contestants: str, data: str = "synthetic") -> Plan:
    return draw_plan(
        contestants_named(contestants),
        (Work("mlp", 4),),
        blocks=1,
        conditions="as-found",
        threads=1,
        available_cores=(0,),
        seed=1,
        measuring=Measuring(seconds=0.05),
        limits=QUICK,
        data=data,
    )


def race(contestants: str, data: str = "synthetic") -> list[Lap]:
    running = Race(planned(contestants, data))
    running.run()
    return sorted(running.laps, key=lambda lap: lap.contestant)


def images(folder: Path, samples: int) -> Path:
    rng = np.random.default_rng(7)
    np.save(folder / "mine.npy", rng.standard_normal((samples, 784), dtype=np.float32))
    return folder / "mine.npy"


def test_a_fed_contestant_has_its_waits_and_every_answer_was_checked() -> None:
    [lap] = race("example")
    assert lap.outcome == "finished", lap.message
    assert lap.feeding["items"] % 4 == 0
    assert lap.feeding["work_ns"] + lap.feeding["waited_ns"] == pytest.approx(lap.feeding["wall_ns"])
    checked = {error.when for error in lap.errors}
    assert checked == {"before", "changed inputs", "fed batch 0", "fed batch 1", "fed, after", "after"}
    assert all(error.right for error in lap.errors)
    assert lap.in_force["feed"] == "fairlap"
    assert len(lap.in_force["data_hash"]) == 12


def test_a_race_without_data_feeds_nothing() -> None:
    [lap] = race("example", data="")
    assert lap.outcome == "finished", lap.message
    assert lap.feeding == {}
    assert "feed" not in lap.in_force


def test_a_users_file_is_fed(tmp_path: Path) -> None:
    [lap] = race("example", str(images(tmp_path, 30)))
    assert lap.outcome == "finished", lap.message
    assert lap.feeding["items"] > 0


@pytest.mark.parametrize(
    ("variant", "outcome", "says"),
    [
        ("fed-cached", "disqualified", "fed batch 1"),
        ("fed-shifted", "disqualified", "fed batch 0"),
        ("fed-not", "unsupported", "example cannot be fed"),
    ],
)
def test_a_contestant_that_goes_wrong_only_when_fed_is_not_ranked(variant: str, outcome: str, says: str) -> None:
    good, bad = race(f"example,example:{variant}")
    assert good.outcome == "finished", good.message
    assert bad.outcome == outcome
    assert says in bad.message


def test_one_that_writes_over_its_batch_is_disqualified_for_what_its_pipeline_held() -> None:
    [bad] = race("example:fed-writes")
    assert bad.outcome in ("disqualified", "failed")
    assert "not what the files hold" in bad.message or "read-only" in bad.message


def test_a_file_that_is_gone_when_the_race_begins_is_told_before_anything_runs(tmp_path: Path) -> None:
    file = images(tmp_path, 30)
    plan = planned("example", str(file))
    file.unlink()
    running = Race(plan)
    with pytest.raises(WrongRequest, match=r"there is no data at .*mine\.npy"):
        running.run()
    assert not running.laps


def test_a_file_that_shrinks_while_it_is_fed_from_ends_that_process_and_no_other_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    measure = WorkerProcess.measure

    def cut_and_measure(worker: WorkerProcess, **wanted: Any) -> MeasuredLaps:
        os.truncate(file, 4096)
        return measure(worker, **wanted)

    monkeypatch.setattr(WorkerProcess, "measure", cut_and_measure)
    running.run()
    [fed] = running.laps
    assert fed.outcome == "failed"
    assert "mine.npy" in fed.message
    assert running.ended_early == f"{file} became shorter, and nothing more can be fed"


@pytest.mark.parametrize(
    ("harm", "says"),
    [(lambda file: os.truncate(file, 4096), "became shorter"), (Path.unlink, "is no longer there to feed from")],
)
def test_a_race_whose_data_is_lost_ends_once_and_keeps_what_was_measured(
    tmp_path: Path, harm: Callable[[Path], None], says: str
) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)), keep=lambda _lap, _samples: harm(file))
    running.run()
    [first] = running.laps
    assert first.outcome == "finished", first.message
    assert running.data_lost == running.ended_early
    assert running.ended_early.startswith(f"{file} {says}")


def test_the_command_says_once_that_data_was_lost_how_to_go_on_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = images(tmp_path, 64)
    monkeypatch.setattr(compare_running, "_forget", lambda _lap, _samples: file.unlink(missing_ok=True))
    wishes = compare_running.Wishes(tmp_path / "run.json", keep=False)
    assert compare_running.run_and_tell(planned("example,example:slow", str(file)), wishes) == 1
    told = capsys.readouterr().err
    assert f"ended after 1 of 2 processes: {file} is no longer there to feed from: No such file" in told
    assert f"go on with: fairlap compare --resume {tmp_path / 'run.json'}" in told
    assert told.count("mine.npy") == 1


def test_data_that_is_not_finite_where_nobody_looked_is_named_and_no_contestant_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.full((30, 784), np.nan, np.float32)
    array[0] = 1
    np.save(tmp_path / "mine.npy", array)
    monkeypatch.setattr(fed_data, "_HASHED_BYTES", array[0].nbytes)
    [lap] = race("example", str(tmp_path / "mine.npy"))
    assert lap.outcome == "failed"
    assert lap.message.endswith("mine.npy has numbers that are not finite; no answer can be checked (fed batch 0)")


def test_rows_and_the_answer_tell_of_the_feeding() -> None:
    plan = planned("example")
    running = Race(plan)
    running.run()
    [row] = rows_of_run(SavedRun(plan, running.laps, {}, {}), "r")
    assert row.data == "synthetic"
    assert row.pipeline_throughput_per_s is not None
    assert row.throughput_per_s is not None
    assert row.waited_share is not None
    assert 0 <= row.waited_share.value < 1
    assert sum(row.stall_shares.values()) == pytest.approx(1)
    assert set(row.stall_shares) == {"work", "reading", "copying", "no free slot"}
    told = text_of(plan, results_of(plan, running.laps))
    assert "fed synthetic" in told
    assert "fed by fairlap: " in told
    assert "items/s, waited " in told


def test_rows_of_a_race_without_data_say_why_there_are_no_figures_of_feeding() -> None:
    plan = planned("example", data="")
    running = Race(plan)
    running.run()
    [row] = rows_of_run(SavedRun(plan, running.laps, {}, {}), "r")
    assert row.pipeline_throughput_per_s is None
    assert row.absent["waited_share"] == "nothing was fed; see --data"
    assert row.stall_shares == {}
