"""A stored run is resumed where it was interrupted, once, and nothing that was measured is replaced."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import error_code, fairlap, here
from fairlap.cli.races.recorder import StoredRun
from fairlap.cli.races.run_race import RunOutput, run_race
from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.render.outputs import read_rows
from fairlap.scenarios.process_result import ProcessResult
from fairlap.store.recording import resume_recording
from fairlap.store.store import open_store

pytestmark = pytest.mark.sanitized

RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--conditions", "as-found"]
RACE += ["--threads", "1"]  # with more, no ratio is claimed on a busy machine


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("FAIRLAP_STORE", str(path))
    return path


@pytest.fixture(scope="module")
def race_of_three_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a race, and return the folder with its file and store."""
    folder = tmp_path_factory.mktemp("race")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_STORE", str(folder / "runs.sqlite"))
        done = here(*RACE, "--blocks", "3", "--seconds", "0.02", "-o", folder / "race.json", "--quiet")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def raced(race_of_three_blocks: Path, store: Path) -> Path:
    """Copy that race's file, and its store with the run for this test alone."""
    shutil.copytree(race_of_three_blocks, store.parent, dirs_exist_ok=True)
    return store.parent / "race.json"


def kept(store: Path) -> tuple[Run, list[dict[str, bytes]]]:
    with open_store(store, reading=True) as opened:
        run = opened.load("last")
        samples = [opened.samples("last", process.block, process.contestant) for process in run.processes]
        return run, [{name: raw.tobytes() for name, raw in each.items()} for each in samples]


def forget(store: Path, processes: list[ProcessResult]) -> None:
    """As if the store could not be written when they had ended."""
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA foreign_keys = ON")
        db.executemany(
            "DELETE FROM processes WHERE block = ? AND contestant = ?",
            [(one.block, one.contestant) for one in processes],
        )


def test_a_file_is_stored_before_it_is_resumed(store: Path, raced: Path) -> None:
    refused = here("compare", "--resume", raced)
    assert (refused.returncode, error_code(refused)) == (2, "E_RESUME")
    assert f"fairlap runs import {raced}" in refused.stderr
    assert error_code(here("compare", "--resume", "last", "--no-store")) == "E_RESUME"


def test_of_a_block_that_was_broken_off_no_samples_stay_beside_the_process_that_takes_its_place(
    store: Path, raced: Path
) -> None:
    whole, samples = kept(store)
    assert samples[4]
    forget(store, whole.processes[5:])
    with open_store(store) as opened:
        again = resume_recording(opened, "last", whole.processes[:4])
        again.keep(whole.processes[4])  # one that crashed has no samples
        again.end({}, interrupted=True)
    assert kept(store)[1] == [*samples[:4], {}]


def test_a_run_that_another_process_has_resumed_is_not_resumed_too(store: Path, raced: Path) -> None:
    with open_store(store) as opened:
        processes = opened.load("last").processes
        with pytest.raises(InvalidRequest, match="resume"):
            resume_recording(opened, "last", processes[:4])
        assert opened.state("last") == "finished"
        assert opened.load("last").processes == processes


def test_a_run_that_is_still_being_recorded_is_not_resumed(store: Path, raced: Path) -> None:
    with open_store(store) as opened:
        run_id, run = opened.id_of("last"), opened.load("last")
        recording = resume_recording(opened, "last", run.processes)
        refused = here("compare", "--resume", "last")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert run_id in refused.stderr
        with pytest.raises(InvalidRequest, match="recorded"):
            run_race(run.plan, RunOutput(quiet=True), StoredRun(run, run_id))
        assert opened.state(run_id) == "running"
        recording.end({})


def interrupted(*arguments: str, after: int) -> str:
    """Interrupt a run after so many processes, and return the arguments that it prints for resuming."""
    running = subprocess.Popen([sys.executable, "-m", "fairlap", *arguments], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith(f"[{after}/"):
            running.send_signal(signal.SIGINT)
            break
    errors = running.stderr.read()
    assert running.wait(timeout=120) == 130, errors
    return "".join(re.findall(r"resume with: fairlap (.*)", errors))


@pytest.mark.slow
def test_the_line_to_go_on_with_ends_the_run_as_it_would_have_ended(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["-o", "b.json", "-o", "the rows.csv", "-o", "b.md", "-o", "b.html"]
    beside = ["--price", "1.10 EUR/h", "--baseline", "python:call=os.getppid", "--target", "1%", "--budget", "10m"]
    line = interrupted(*RACE, "--blocks", "6", "--seconds", "0.02", *files, *beside, after=3)
    budget = re.search(r" --budget (\S+)s$", line)
    assert budget, line
    assert 0 < float(budget[1]) < 600
    written = {file: Path(file).read_bytes() for file in files[1::2]}
    again = fairlap(*shlex.split(line))
    assert again.returncode == 0, again.stderr
    assert all(Path(file).read_bytes() != content for file, content in written.items())
    with open_store(store, reading=True) as opened:
        for rows in (read_rows(Path("the rows.csv")), opened.rows("last")):
            assert {row.processes for row in rows} == {6}
            assert {row.currency for row in rows} == {"EUR"}
            assert {row.baseline for row in rows} - {None} == {"python:call=os.getppid"}
            assert all(row.cost_per_1000_items for row in rows)


@pytest.mark.slow
def test_a_second_interruption_prints_the_same_command(store: Path, tmp_path: Path) -> None:
    asked = ["--price", "2/h", "-o", str(tmp_path / "rows.csv")]
    line = interrupted(*RACE, "--blocks", "20", "--seconds", "0.05", *asked, after=3)
    assert interrupted(*shlex.split(line), after=7) == line


@pytest.mark.slow
def test_an_interrupted_run_that_is_not_stored_cannot_be_resumed(store: Path) -> None:
    assert interrupted(*RACE, "--blocks", "20", "--seconds", "0.05", "--no-store", after=1) == ""
