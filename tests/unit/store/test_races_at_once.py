"""Races of one user that run at the same time share a store: each is stored whole."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import output
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole

RACES = 20


@pytest.mark.slow
def test_twenty_races_at_once_are_all_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store" / "runs.sqlite"
    monkeypatch.setenv("FAIRLAP_STORE", str(store))
    command = [sys.executable, "-m", "fairlap", "compare", "callable", "--on", "python:call=os.getpid"]
    command += ["--blocks", "1", "--seconds", "0.01", "--conditions", "as-found", "--quiet"]
    races = [
        subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(RACES)
    ]
    try:
        errors = [race.communicate(timeout=250)[1] for race in races]
    finally:
        for race in races:
            race.kill()
            race.wait()
    assert [race.returncode for race in races] == [0] * RACES, errors
    assert not any(b"Traceback" in each for each in errors)
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*), count(DISTINCT id) FROM runs").fetchone() == (RACES, RACES)
    listed = json.loads(output("runs", "--json", "--limit", str(RACES + 1)))["runs"]
    assert [each["state"] for each in listed] == ["finished"] * RACES


@pytest.mark.slow
def test_another_process_that_ends_leaves_the_log_of_a_store_that_is_open_here(tmp_path: Path) -> None:
    """SQLite removes the log with the last connection.

    A process that closes any descriptor of the store gives up its locks on it, and would no longer count as one.
    """
    path = tmp_path / "runs.sqlite"
    with open_store(path) as first:
        keep_whole(first, a_run())
        for reading in (False, True):
            with open_store(path, reading=reading) as second:
                assert len(second.runs()) == 1
        in_another_process = "from pathlib import Path; from fairlap.store.store import open_store; " + (
            f"store = open_store(Path({str(path)!r})); print(len(store.runs())); store.close()"
        )
        done = subprocess.run([sys.executable, "-c", in_another_process], capture_output=True, text=True, timeout=100)
        assert done.stdout == "1\n", done.stderr
        assert path.with_name("runs.sqlite-wal").exists()
        keep_whole(first, a_run(blocks=4))
        with open_store(path) as third:
            assert len(third.runs()) == 2
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_nothing_but_sqlite_opens_the_file_of_an_open_store(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole
path, opened, watching = Path({str(tmp_path)!r}) / "runs.sqlite", [], False
def hook(event, arguments):
    if watching and event == "open" and str(arguments[0]) in (str(path), str(path) + "-wal", str(path) + "-shm"):
        if not int(arguments[2]) & os.O_EXCL:  # which fails on a file that is there
            opened.append(arguments)
sys.addaudithook(hook)
with open_store(path) as store:
    watching = True
    run = keep_whole(store, a_run())
    with open_store(path, reading=True) as other:
        other.load(run), other.rows(run), other.exported(run), other.runs()
    store.remove(run)
print(opened)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "[]\n", done.stdout + done.stderr
