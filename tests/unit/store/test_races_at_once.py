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
    listed = json.loads(output("runs", "--json", "--limit", str(RACES + 1)))
    assert [each["state"] for each in listed] == ["finished"] * RACES
