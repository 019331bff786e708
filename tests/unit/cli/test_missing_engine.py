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
from fairlap.store.runs.run_file import save_run
from measured_runs import store_measured_run
from saved_runs import saved_run

pytestmark = pytest.mark.sanitized


@pytest.fixture(scope="module")
def without_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package without the engine, with a link to the built-in models."""
    folder = tmp_path_factory.mktemp("unbuilt")
    left_out = shutil.ignore_patterns("*.so", "__pycache__", "bench_models")
    package = Path(fairlap.__file__).parent
    shutil.copytree(package, folder / "fairlap", ignore=left_out)
    (folder / "fairlap" / "bench_models").symlink_to((package / "bench_models").resolve())
    return folder


def run(folder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """With ``-S``, so that no hook of an editable installation finds the engine all the same."""
    path = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-S", "-m", "fairlap", *arguments]
    own = {"PYTHONPATH": path, "FAIRLAP_STORE": str((cwd or folder) / "runs.sqlite")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=cwd or folder, env={**os.environ, **own}
    )


@pytest.mark.parametrize("command", [["floor"], ["time", "os:getpid"], ["compare", "mlp", "--on", "torch"]])
def test_a_command_that_needs_the_engine_says_in_one_line_that_it_is_not_built(
    without_engine: Path, command: list[str]
) -> None:
    done = run(without_engine, *command)
    assert (done.returncode, error_code(done)) == (2, "E_NOT_BUILT")


# Each with its status. Those that list, show, judge and draw runs time nothing.
WITHOUT_TIMING = [
    ("--version", 0),
    ("list frameworks", 0),
    ("list suites", 0),
    ("list prices", 0),
    ("runs", 0),
    ("runs export last kept.json", 0),
    ("show last", 0),
    ("show even.json", 0),
    ("history mlp", 0),
    ("stale", 0),
    ("diff even.json slower.json", 0),
    ("across even.json slower.json", 0),
    ("gate even.json --baseline torch", 0),
    ("gate slower.json --baseline torch", 1),
    ("export even.json -o rows.csv", 0),
    ("report even.json -o report.md", 0),
    ("board -o site", 0),
    ("compress model.onnx --to int4 -o small.onnx", 2),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    save_run(folder / "even.json", saved_run({"torch": 1e6, "jax": 1e6}))
    save_run(folder / "slower.json", saved_run({"torch": 1e6, "jax": 1.2e6}, seed=1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_STORE", str(folder / "runs.sqlite"))
        store_measured_run()
    return folder


@pytest.mark.slow_but("list frameworks", "show last", "gate slower")
@pytest.mark.parametrize(("line", "status"), WITHOUT_TIMING)
def test_a_command_that_times_nothing_needs_no_engine(without_engine: Path, runs: Path, line: str, status: int) -> None:
    done = run(without_engine, *line.split(), cwd=runs)
    assert done.returncode == status, done.stderr
    assert "E_NOT_BUILT" not in done.stderr
    assert "Traceback" not in done.stderr


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
