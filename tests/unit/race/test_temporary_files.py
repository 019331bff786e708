"""What contestants and readers of models leave in the temporary folder goes with the race, also after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import SHORT, fairlap
from fairlap.launch.opened_source import process_of_source

CALLABLES = """
import os, tempfile, time

def leaves():
    if not os.path.exists(os.path.join(tempfile.gettempdir(), "left-by-a-contestant")):
        open(os.path.join(tempfile.gettempdir(), "left-by-a-contestant"), "w").close()

def sleeps():
    leaves()
    time.sleep(600)
"""


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, Any]:
    """Have temporary files in a folder of this test's."""
    (tmp_path / "left_callables.py").write_text(CALLABLES)
    (tmp_path / "tmp").mkdir()
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    return {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": path}


def raced(tmp_path: Path, name: str) -> list[str]:
    return ["compare", "callable", "--on", f"python:call=left_callables.{name}", *SHORT]


@pytest.mark.slow
def test_what_a_contestant_leaves_goes_with_the_race(tmp_path: Path, variables: dict[str, Any]) -> None:
    done = fairlap(*raced(tmp_path, "leaves"), cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_next_race_removes_what_a_killed_one_left_and_nothing_else(
    tmp_path: Path, variables: dict[str, Any]
) -> None:
    of_another = tmp_path / "tmp" / "fairlap-of-another-program"
    of_another.mkdir()
    command = [sys.executable, "-m", "fairlap", *raced(tmp_path, "sleeps")]
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **variables}, stderr=subprocess.DEVNULL) as killed:
        while not [*(tmp_path / "tmp").rglob("left-by-a-contestant")]:
            assert killed.poll() is None
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
    [left] = [each for each in (tmp_path / "tmp").iterdir() if each != of_another]
    assert [*left.rglob("left-by-a-contestant")]
    assert fairlap(*raced(tmp_path, "leaves"), cwd=tmp_path, **variables).returncode == 0
    assert list((tmp_path / "tmp").iterdir()) == [of_another]


def test_a_process_that_reads_a_model_has_its_temporary_files_in_a_locked_folder() -> None:
    with process_of_source("fairlap.models.sources.answering", errors=subprocess.DEVNULL) as process:
        child = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        process.terminate()
    [folder] = [Path(os.fsdecode(each.partition(b"=")[2])) for each in child if each.startswith(b"TMPDIR=")]
    assert (folder / ".in-use").is_file()
