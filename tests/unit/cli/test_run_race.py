"""A race goes on whatever becomes of the store, says so once, and names a kept run only when it is whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.results.results import results_of
from fairlap.store.run_file import load_run

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are found and ended through /proc"),
]

RACE = ["compare", "callable", "--on", "python:call=os.getpid,python:call=os.getppid", "--seconds", "0.02", "--quiet"]


def fairlap(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlap", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_race_is_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    told = fairlap(*RACE, "--blocks", "2")
    assert told.returncode == 0, told.stderr
    kept = re.search(r"stored as (\S+);", told.stderr)
    assert kept, told.stderr
    shown = fairlap("show", kept[1])
    assert told.stdout.strip() in shown.stdout
    assert "8 of 8 processes" in shown.stdout
    diff = fairlap("diff", "last", kept[1])
    assert diff.returncode == 0, diff.stderr
    again = fairlap("rerun", "last")
    assert again.returncode == 0, again.stderr
    assert fairlap("runs").stdout.count("finished") == 2


def test_who_wants_nothing_kept_leaves_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    told = fairlap(*RACE, "--blocks", "1", "--no-store")
    assert told.returncode == 0
    assert "stored as" not in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_made_ends_no_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", "/proc/nowhere/runs.sqlite")
    told = fairlap(*RACE, "--blocks", "1")
    assert told.returncode == 0
    assert "python:call=os.getpid" in told.stdout
    assert told.stderr.count("this run is not stored: /proc/nowhere") == 1
    assert "kept as" not in told.stderr


def test_a_store_that_is_full_is_said_once_and_names_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "runs.sqlite"
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    assert fairlap(*RACE, "--blocks", "1").returncode == 0
    before = store.stat().st_size
    limited = f"ulimit -f {before // 1024 + 8}; trap '' XFSZ; exec {sys.executable} -m fairlap " + " ".join(RACE)
    told = subprocess.run(
        ["bash", "-c", f"{limited} --blocks 3"], capture_output=True, text=True, timeout=120, check=False
    )
    assert "python:call=os.getpid" in told.stdout, told.stderr
    assert told.stderr.count("trying again after every process") == 1, told.stderr
    assert "kept as" not in told.stderr


def test_a_race_ends_with_all_the_files_that_were_asked_for(tmp_path: Path) -> None:
    files = {name: tmp_path / f"race.{name}" for name in ("json", "csv", "md", "html")}
    options = [part for name, file in files.items() for part in ("-o", str(file))]
    told = fairlap(*RACE, "--blocks", "2", *options)
    assert told.returncode == 0, told.stderr
    assert all(file.stat().st_size > 100 for file in files.values())
    assert "python:call=os.getpid" in files["html"].read_text()


def test_of_a_callable_no_error_is_told_since_none_of_its_answers_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    told = fairlap(*RACE, "--blocks", "1", "--no-store", "-o", str(file))
    assert told.returncode == 0, told.stderr
    assert "error" not in told.stdout
    rows = results_of(load_run(file), "r").rows
    assert {row.absent["error_relative"] for row in rows} == {"no answer was checked"}
