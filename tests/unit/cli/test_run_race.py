"""A race goes on whatever becomes of the store, says so once, and names a kept run only when it is whole."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import fairlap, here
from fairlap.cli.races.run_race import Pace
from fairlap.render.outputs import read_rows
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import load_run
from machine_marks import needs_proc

pytestmark = [pytest.mark.sanitized, needs_proc]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--seconds", "0.02", "--quiet"]


@pytest.mark.slow
def test_a_race_is_kept_and_found_again() -> None:
    done = fairlap(*RACE, "--blocks", "2")
    assert done.returncode == 0, done.stderr
    kept = re.search(r"stored as (\S+);", done.stderr)
    assert kept, done.stderr
    shown = fairlap("show", kept[1])
    assert done.stdout.strip() in shown.stdout
    assert "4 of 4 processes" in shown.stdout
    assert fairlap("diff", "last", kept[1]).returncode == 1  # one run under two names
    again = fairlap("rerun", "last")
    assert again.returncode == 0, again.stderr
    diff = fairlap("diff", kept[1], "last")
    assert diff.returncode == 0, diff.stderr
    assert fairlap("runs").stdout.count("finished") == 2


def test_files_of_a_long_race_take_a_twentieth_of_its_time_and_the_first_is_written_at_once() -> None:
    """Of 600 blocks of 0.6 s, after the n-th of which writing takes 4.5 ms times n."""
    now_s, saving_s, saved = 0.0, 0.0, []
    pace = Pace(lambda: now_s)
    for block in range(1, 601):
        now_s += 0.6
        with pace.if_due() as due:
            if due:
                now_s, saving_s = now_s + 0.0045 * block, saving_s + 0.0045 * block
                saved.append(block)
    assert saved[0] == 1
    assert 0.01 < saving_s / now_s < 0.05
    assert max(after - before for before, after in pairwise(saved)) * 0.6 < 21 * 0.0045 * 600
    assert sum(0.0045 * block for block in range(1, 601)) > 2 * now_s  # what writing after each would take


@pytest.mark.slow
def test_without_storing_there_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    done = here(*RACE, "--blocks", "1", "--no-store", "-o", file)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [file]
    # Of a callable no error is reported, since none of its answers is checked.
    assert all(row.error_relative is None for row in results_of(load_run(file), "r").rows)


@pytest.mark.slow_but("E_STORE_READ_ONLY")
@pytest.mark.parametrize(
    ("where", "code"),
    [("/proc/x", "E_STORE_READ_ONLY"), (".", "E_STORE")],
)
def test_a_store_that_cannot_be_opened_ends_no_race_and_its_code_is_the_last_line(
    where: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", where)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    file = tmp_path / "race.csv"
    done = fairlap(*RACE, "--blocks", "1", "-o", file, cwd=tmp_path)
    assert done.returncode == 1
    assert "python:call=os.getpid" in done.stdout
    assert len(read_rows(file)) == 2
    assert done.stderr.count(f"[{code}]") == 1, done.stderr
    assert done.stderr.rstrip().endswith(f"[{code}]")
    assert "stored as" not in done.stderr
    [kept] = tmp_path.glob("fairlap-run-*/race.json")
    assert str(kept) in done.stderr


@pytest.mark.slow
def test_a_contestant_that_failed_leaves_the_status_to_those_that_finished() -> None:
    assert here(*RACE[:3], "python:call=os.getpid,python:call=os.abort", *RACE[4:], "--blocks", "1").returncode == 0
    assert here(*RACE[:3], "python:call=os.abort", *RACE[4:], "--blocks", "1").returncode == 1


@pytest.mark.slow
def test_a_store_that_is_full_ends_with_an_error_names_no_run_and_leaves_the_files_that_were_written(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fairlap(*RACE, "--blocks", "1").returncode == 0
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    file = tmp_path / "race.csv"
    kib = store.stat().st_size // 1024 + 8
    limited = f'exec bash -c \'ulimit -f {kib}; trap "" XFSZ; exec "$@"\' bash'
    done = fairlap(*RACE, "--blocks", "3", "-o", file, before=limited)
    assert "python:call=os.getpid" in done.stdout, done.stderr
    assert done.stderr.count("trying again after every process") == 1, done.stderr
    assert "stored as" not in done.stderr
    assert done.returncode == 1
    assert done.stderr.count("[E_STORE_FULL]") == 1, done.stderr
    assert {row.processes for row in read_rows(file)} == {3}
    [kept] = tmp_path.glob("fairlap-run-*/race.json")
    assert str(kept) in done.stderr


def test_a_race_ends_with_all_the_files_that_were_asked_for(tmp_path: Path) -> None:
    files = {name: tmp_path / f"race.{name}" for name in ("json", "csv", "md", "html")}
    options = [part for name, file in files.items() for part in ("-o", str(file))]
    done = here(*RACE, "--blocks", "2", *options)
    assert done.returncode == 0, done.stderr
    assert all(file.stat().st_size > 100 for file in files.values())
    assert "python:call=os.getpid" in files["html"].read_text()
