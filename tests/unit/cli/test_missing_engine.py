"""Where the native engine is not built, a command that needs it ends with one line, and the others work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import fairlap
import pytest
from command_line import error_code

pytestmark = pytest.mark.sanitized


@pytest.fixture(scope="module")
def without_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package without the engine; the built-in models are not part of it."""
    folder = tmp_path_factory.mktemp("unbuilt")
    left_out = shutil.ignore_patterns("*.so", "__pycache__", "bench_models")
    shutil.copytree(Path(fairlap.__file__).parent, folder / "fairlap", ignore=left_out)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With ``-S``, so that no hook of an editable installation finds the engine all the same."""
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-S", "-m", "fairlap", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=folder, env={**os.environ, "PYTHONPATH": path}
    )


@pytest.mark.parametrize("command", [["floor"], ["--version"], ["compare", "mlp", "--on", "torch"]])
def test_a_command_that_needs_the_engine_says_in_one_line_that_it_is_not_built(
    without_engine: Path, command: list[str]
) -> None:
    done = run(without_engine, *command)
    assert (done.returncode, error_code(done)) == (2, "E_NOT_BUILT")


def test_json_has_the_error_too(without_engine: Path) -> None:
    done = run(without_engine, "floor", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "E_NOT_BUILT"


def test_help_and_explanations_need_no_engine(without_engine: Path) -> None:
    for command in (["--help"], ["compare", "--help"], ["explain", "E_NOT_BUILT"]):
        assert run(without_engine, *command).returncode == 0


def test_an_engine_that_cannot_be_loaded_is_reported_with_its_file(without_engine: Path, tmp_path: Path) -> None:
    shutil.copytree(without_engine / "fairlap", tmp_path / "fairlap")
    file = tmp_path / "fairlap" / "engine" / f"_native{EXTENSION_SUFFIXES[0]}"
    file.write_text("no library")
    done = run(tmp_path, "floor")
    assert (done.returncode, error_code(done)) == (2, "E_NOT_BUILT")
    assert str(file) in done.stderr
