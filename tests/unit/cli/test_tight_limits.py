"""Few descriptors, little memory, other encodings and odd folders: commands run, or end in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import fairlap

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")]

RACE = [
    "compare",
    "callable",
    "--on",
    "python:call=os.getpid,python:call=os.getppid",
    "--blocks",
    "1",
    "--seconds",
    "0.01",
    "--quiet",
]


@pytest.mark.parametrize(
    "before",
    [
        "ulimit -n 64;",
        "ulimit -n 20;",
        "ulimit -v 4000000;",
        "export LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0;",
        "export PYTHONIOENCODING=ascii;",
        "ulimit -c 0; exec <&-;",
    ],
)
def test_a_race_runs_or_says_why_not(before: str, tmp_path: Path) -> None:
    done = fairlap(*RACE, before=before, FAIRLAP_STORE=tmp_path / "s" / "runs.sqlite", FAIRLAP_CACHE=tmp_path / "c")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_a_race_runs_in_a_folder_with_spaces_letters_and_newlines(tmp_path: Path) -> None:
    folder = tmp_path / "a b ü\nc"
    folder.mkdir()
    done = fairlap(*RACE, "-o", "race.json", cwd=folder, FAIRLAP_STORE=folder / "runs.sqlite")
    assert done.returncode == 0, done.stderr
    assert (folder / "race.json").exists()
