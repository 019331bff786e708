"""A command of others, and all that it starts, ends with what waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairlap.machine.programs.guarded_command import run_guarded
from fairlap.machine.programs.processes import lives

pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(sys.platform != "linux", reason="orphans are handed to subreapers by Linux"),
]

_SHELL = "sleep 300 & echo $! > started; wait"


def sleeper(folder: Path) -> int:
    return int((folder / "started").read_text())


def test_its_status_is_returned_and_its_output_goes_where_it_should(tmp_path: Path) -> None:
    with (tmp_path / "printed").open("wb") as file:
        status = run_guarded(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path, os.environ, output=file.fileno())
    assert status == 3
    assert sorted((tmp_path / "printed").read_text().split()) == ["err", "out"]


def test_variables_that_are_dropped_are_not_handed_on(tmp_path: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "KEPT": "yes"}
    code = 'test -z "$PYTHONPATH" && test "$KEPT" = yes'
    assert run_guarded(["sh", "-c", code], tmp_path, variables, dropped=["PYTHONPATH", "PYTHONHOME"]) == 0


def test_one_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    within_s = 1.0
    while not (tmp_path / "started").exists():  # a busy machine may need more than that to start it
        began_s = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired):
            run_guarded(["sh", "-c", _SHELL], tmp_path, os.environ, within_s=within_s)
        assert time.monotonic() - began_s < 100  # of the 300 s that it sleeps
        within_s *= 2
    assert not lives(sleeper(tmp_path))
