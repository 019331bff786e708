"""Data of a race that are gone, cut off or changed: no contestant is blamed, and no figure is of two sets of data."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from fairlap.cli import cli
from fairlap.cli.races import run_race as run_race_module
from fairlap.errors import InvalidRequest
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.facts import machine_facts
from fairlap.race.around_blocks.smallest_memory import Trial
from fairlap.race.planning.plan_reach import allow
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.render.outputs import FORMATS
from fairlap.scenarios.process_result import ProcessResult, SmallestMemory
from fairlap.store.runs.run_file import load_run, save_run
from fairlap.store.store import open_store
from fed_races import images, planned
from machine_marks import needs_proc
from small_races import run_race

pytestmark = [pytest.mark.sanitized, pytest.mark.usefixtures("example"), needs_proc]


def test_a_file_that_is_gone_when_the_race_begins_is_told_before_anything_runs(tmp_path: Path) -> None:
    file = images(tmp_path, 30)
    plan = planned("example", str(file))
    file.unlink()
    running = Race(plan)
    with pytest.raises(InvalidRequest, match=r"mine\.npy"):
        running.run()
    assert not running.processes


def test_a_file_that_shrinks_while_it_is_fed_from_ends_the_race_and_blames_no_contestant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    measure = WorkerProcess.measure

    def cut_and_measure(worker: WorkerProcess, **wanted: Any) -> Any:
        os.truncate(file, 4096)
        return measure(worker, **wanted)

    monkeypatch.setattr(WorkerProcess, "measure", cut_and_measure)
    running.run()
    assert running.processes == []
    assert running.ended_early.startswith(f"{file} became shorter")


@pytest.mark.slow
def test_what_the_loss_of_its_data_broke_is_run_again_when_they_are_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)
    whole, saved = file.read_bytes(), tmp_path / "run.json"
    plan = planned("example", str(file), blocks=2)
    allow(plan)
    measure = WorkerProcess.measure
    begun: list[WorkerProcess] = []

    def cut_and_measure(worker: WorkerProcess, **wanted: Any) -> Any:
        if worker not in begun:  # where the machine is busy, one measures again
            begun.append(worker)
        if len(begun) == 2:
            os.truncate(file, 4096)
        return measure(worker, **wanted)

    monkeypatch.setattr(WorkerProcess, "measure", cut_and_measure)
    assert (
        run_race_module.run_race(plan, run_race_module.RunOutput(files=((saved, FORMATS[".json"]),), quiet=True)) == 1
    )
    assert [(process.block, process.outcome) for process in load_run(saved).processes] == [(0, "finished")]
    file.write_bytes(whole)
    assert fairlap("compare", "--resume", "last", "-o", str(saved)).exit_code == 0
    assert [(process.block, process.outcome) for process in load_run(saved).processes] == [
        (n, "finished") for n in range(2)
    ]


@pytest.mark.slow_but("unlink")
@pytest.mark.parametrize(
    ("harm", "says"),
    [(lambda file: os.truncate(file, 4096), "became shorter"), (Path.unlink, "can no longer be read")],
)
def test_a_race_whose_data_is_lost_ends_once_and_keeps_what_was_measured(
    tmp_path: Path, harm: Callable[[Path], None], says: str
) -> None:
    file = images(tmp_path, 64)
    running = run_race(planned("example,example:slow", str(file)), keep=lambda _process, _samples: harm(file))
    [first] = running.processes
    assert first.outcome == "finished", first.message
    assert running.data_lost == running.ended_early
    assert running.ended_early.startswith(f"{file} {says}")


@pytest.mark.slow
def test_the_command_says_once_that_data_was_lost_how_to_go_on_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = images(tmp_path, 64)
    monkeypatch.setattr(run_race_module, "_discard", lambda _process, _samples: file.unlink(missing_ok=True))
    output = run_race_module.RunOutput(store=False)
    assert run_race_module.run_race(planned("example,example:slow", str(file)), output) == 1
    told = capsys.readouterr().err
    assert "1 of 2 processes" in told
    assert "No such file" in told
    assert "cannot be resumed" in told
    assert told.count("mine.npy can no longer be read") == 1


@pytest.mark.slow
def test_a_file_that_changes_under_a_race_does_not_make_one_figure_of_two_sets_of_data(tmp_path: Path) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    kept: list[ProcessResult] = []

    def change(process: ProcessResult, _samples: object) -> None:
        kept.append(process)
        np.save(file, np.load(file) + 1)

    running._keep = change
    running.run()
    first, second = kept
    assert first.outcome == "finished", first.message
    assert second.outcome == "failed"
    assert f"{file} changed" in second.message


@pytest.mark.slow
def test_a_file_that_is_written_anew_with_the_same_samples_is_the_same_data(tmp_path: Path) -> None:
    file = images(tmp_path, 64)
    running = Race(planned("example,example:slow", str(file)))
    running._keep = lambda _process, _samples: np.save(file, np.load(file))
    running.run()
    assert [process.outcome for process in running.processes] == ["finished", "finished"]


def stored(tmp_path: Path, blocks: int) -> tuple[str, Path]:
    """Store a run whose first block is over, and return its id and the data that it was fed."""
    file = images(tmp_path, 64)
    plan = planned("example", str(file), blocks=blocks)
    allow(plan)
    running = Race(plan)
    with suppress(KeyboardInterrupt):
        running.run(after_block=_interrupt)
    save_run(tmp_path / "run.json", Run(plan, running.processes, machine_facts(), {}))
    with open_store() as store:
        return store.import_from(tmp_path / "run.json"), file


def _interrupt() -> None:
    raise KeyboardInterrupt


def fairlap(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--quiet"])


def processes_of(run_id: str) -> list[ProcessResult]:
    with open_store(reading=True) as store:
        return store.load(run_id).processes


def test_a_run_is_resumed_on_the_data_that_it_was_fed_and_on_no_other(tmp_path: Path) -> None:
    run_id, file = stored(tmp_path, blocks=2)
    before, whole = processes_of(run_id), file.read_bytes()
    np.save(file, np.load(file) + 1)
    refused = fairlap("compare", "--resume", run_id).exception
    assert isinstance(refused, InvalidRequest)
    assert refused.code == "E_RESUME"
    assert processes_of(run_id) == before
    file.write_bytes(whole)
    assert fairlap("compare", "--resume", run_id).exit_code == 0
    assert [process.outcome for process in processes_of(run_id)] == ["finished", "finished"]


@pytest.mark.slow
def test_a_rerun_says_whether_the_data_differ(tmp_path: Path) -> None:
    run, file = stored(tmp_path, blocks=1)
    assert "no known change of machine, versions and data" in fairlap("rerun", run).output
    [then] = {process.in_force["data_hash"] for process in processes_of(run)}
    np.save(file, np.load(file) + 1)
    told = fairlap("rerun", run).output
    assert f"fairlap: data {file} {then} -> " in told
    assert "no known change" not in told


@pytest.mark.slow
def test_a_search_for_the_smallest_memory_that_lost_its_data_has_found_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = images(tmp_path, 64)

    def cut_and_search(_trial: Trial) -> SmallestMemory:
        os.truncate(file, 4096)
        return SmallestMemory("address space", None, 2**25, 1, "it fails without a limit")

    monkeypatch.setattr("fairlap.race.around_blocks.after_blocks.smallest_memory", cut_and_search)
    running = run_race(msgspec.structs.replace(planned("example", str(file)), min_memory=True))
    [process] = running.processes
    assert process.finished
    assert process.smallest_memory is None
    assert running.ended_early.startswith(f"{file} became shorter")
