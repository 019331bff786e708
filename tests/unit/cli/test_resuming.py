"""A run that is in a file and in the store goes on from what is known last; nothing that was measured is replaced."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from fairlap.cli.run_race import Earlier, Wishes, run_and_tell
from fairlap.errors import InvalidRequest
from fairlap.race.process_result import ProcessResult
from fairlap.race.run import Run
from fairlap.render.outputs import read_rows
from fairlap.store.run_file import load_run, save_run
from fairlap.store.store import open_store

pytestmark = pytest.mark.sanitized

RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--conditions", "as-found"]


def fairlap(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlap", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("FAIRLAP_STORE", str(path))
    return path


@pytest.fixture
def raced(store: Path, tmp_path: Path) -> Path:
    """The file of a race of three blocks that is over, in the store too."""
    file = tmp_path / "race.json"
    done = fairlap(*RACE, "--blocks", "3", "--seconds", "0.02", "--json", str(file), "--quiet")
    assert done.returncode == 0, done.stderr
    return file


def first_processes(file: Path, processes: int) -> Path:
    """As the file was when so many processes had ended."""
    run = load_run(file)
    run.processes = run.processes[:processes]
    earlier = file.with_name("earlier.json")
    save_run(earlier, run)
    return earlier


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


def test_an_older_file_of_a_run_does_not_replace_what_the_store_knows(store: Path, raced: Path) -> None:
    before = kept(store)
    file = first_processes(raced, 3)
    again = fairlap("compare", "--resume", str(file), "--quiet")
    assert again.returncode == 0, again.stderr
    assert "6 of 6 processes are kept from before" in again.stderr
    after = kept(store)
    assert (after[0].processes, after[1]) == (before[0].processes, before[1])
    assert load_run(file).processes == before[0].processes


def test_a_file_that_knows_more_than_the_store_brings_its_processes_along(store: Path, raced: Path) -> None:
    whole, samples = kept(store)
    forget(store, whole.processes[4:])
    assert kept(store)[0].processes == whole.processes[:4]
    again = fairlap("compare", "--resume", str(raced), "--quiet")
    assert again.returncode == 0, again.stderr
    after = kept(store)
    assert after[0].processes == whole.processes
    assert after[1] == [*samples[:4], {}, {}]


def test_a_file_and_a_store_that_went_on_apart_are_told_and_neither_is_touched(store: Path, raced: Path) -> None:
    forget(store, load_run(raced).processes[4:])
    with open_store(store, reading=True) as opened:
        run_id = opened.id_of("last")
    apart = raced.with_name("apart.json")
    shutil.copy(raced, apart)
    assert fairlap("compare", "--resume", run_id, "--quiet").returncode == 0
    before, text = kept(store), apart.read_bytes()
    refused = fairlap("compare", "--resume", str(apart), "--quiet")
    assert refused.returncode == 2
    assert "went on apart" in refused.stderr
    assert msgspec.json.encode(kept(store)[0]) == msgspec.json.encode(before[0])
    assert apart.read_bytes() == text
    assert fairlap("compare", "--resume", str(apart), "--no-keep", "--quiet").returncode == 0


def test_of_a_block_that_was_broken_off_no_samples_stay_beside_the_process_that_takes_its_place(
    store: Path, raced: Path
) -> None:
    whole, samples = kept(store)
    assert samples[4]
    forget(store, whole.processes[5:])
    with open_store(store) as opened:
        again = opened.go_on("last", whole.processes[:4])
        again.keep(whole.processes[4])  # one that crashed has no samples
        again.end({}, interrupted=True)
    assert kept(store)[1] == [*samples[:4], {}]


def test_who_resumes_what_somebody_else_has_gone_on_with_is_told(store: Path, raced: Path) -> None:
    with open_store(store) as opened:
        processes = opened.load("last").processes
        with pytest.raises(InvalidRequest, match="has got more processes in the meantime; resume it once more"):
            opened.go_on("last", processes[:4])
        assert opened.state("last") == "finished"
        assert opened.load("last").processes == processes


@pytest.mark.parametrize("keeping", ["--keep", "--no-keep"])
@pytest.mark.parametrize("named", ["last", "race.json"])
def test_a_run_that_is_still_being_recorded_is_not_raced_beside(
    store: Path, raced: Path, named: str, keeping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(raced.parent)
    with open_store(store) as opened:
        run_id, processes = opened.id_of("last"), load_run(raced).processes
        recording = opened.go_on("last", processes)
        refused = fairlap("compare", "--resume", named, keeping)
        assert refused.returncode == 2
        told = f"the run {run_id} is still being recorded by another process; end it first, or wait for it"
        assert told in refused.stderr
        assert refused.stdout == ""
        assert opened.state(run_id) == "running"
        recording.end({})


def test_a_run_that_somebody_goes_on_with_just_now_is_not_raced_beside(store: Path, raced: Path) -> None:
    run, _ = kept(store)
    with open_store(store) as opened:
        run_id = opened.id_of("last")
        recording = opened.go_on("last", run.processes)
        with pytest.raises(InvalidRequest, match="still being recorded"):
            run_and_tell(run.plan, Wishes(quiet=True), earlier=Earlier(run, run_id))
        recording.end({})


def interrupted(*arguments: str, after: int) -> str:
    """The line that it says to go on with, when it was interrupted after so many processes."""
    running = subprocess.Popen([sys.executable, "-m", "fairlap", *arguments], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith(f"[{after}/"):
            running.send_signal(signal.SIGINT)
            break
    told = running.stderr.read()
    assert running.wait(timeout=120) == 130, told
    [line] = re.findall(r"go on with: fairlap (.*)", told)
    return str(line)


def test_the_line_to_go_on_with_ends_the_run_as_it_would_have_ended(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["--json", "b.json", "--csv", "the rows.csv", "--md", "b.md", "--html", "b.html"]
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
            assert {row.baseline for row in rows} == {None, "python:call=os.getppid"}  # none of its own
            assert all(row.cost_per_1000_items for row in rows)


def test_a_second_interruption_says_the_same_again(store: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    asked = ["--price", "2/h", "--csv", str(rows), "--no-keep", "--json", str(tmp_path / "race.json")]
    line = interrupted(*RACE, "--blocks", "20", "--seconds", "0.05", *asked, after=3)
    assert line == f"compare --resume {tmp_path / 'race.json'} --csv {rows} --price 2/h --no-keep"
    assert interrupted(*shlex.split(line), after=7) == line
