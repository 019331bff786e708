"""The command line: figures on standard output, one or two lines for every error, exit codes that mean something."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.sanitized


def fairlap(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlap", *arguments], capture_output=True, text=True, cwd=cwd, timeout=60
    )


def test_floor_prints_the_floor_of_the_cpu_clock_and_why_there_is_no_device() -> None:
    told = fairlap("floor")
    assert told.returncode == 0
    for word in ("cpu", "quantum", "overhead", "bias", "cuda"):
        assert word in told.stdout


def test_floor_as_json_has_the_promised_keys() -> None:
    floors = json.loads(fairlap("floor", "--json").stdout)
    assert {"source", "quantum_ns", "overhead_ns", "bias_ns"} <= set(floors["cpu"])
    assert floors["cpu"]["quantum_ns"] > 0
    assert "cuda" in floors
    if floors["cuda"] is None:
        assert floors["cuda_absent"]


def test_time_prints_what_a_person_reads() -> None:
    told = fairlap("time", "os:getpid", "--seconds", "0.05")
    assert told.returncode == 0
    assert told.stdout.startswith("os:getpid\n")
    assert "floor: quantum" in told.stdout


def test_time_as_json_can_hold_every_sample() -> None:
    told = json.loads(fairlap("time", "os:getpid", "--samples", "30", "--json", "--raw").stdout)
    assert len(told["quantities"]["wall_ns"]["samples_ns"]) == 30
    assert told["stopped_by"] == "samples"


def test_time_finds_a_module_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Kept:\n    @staticmethod\n    def work():\n        return 1\n")
    assert fairlap("time", "mine:Kept.work", "--samples", "10", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nonsense", "is not of the form MODULE:CALLABLE"),
        ("no_such_module:f", "cannot import no_such_module"),
        ("math:no_such", "math has no 'no_such'"),
        ("math:pi", "math:pi is a float, not a callable"),
        ("math:sin", "math:sin raised TypeError"),
    ],
)
def test_a_wrong_target_gets_two_lines_at_most_and_exit_2(target: str, words: str) -> None:
    told = fairlap("time", target)
    assert told.returncode == 2
    assert words in told.stderr
    assert told.stderr.startswith("fairlap: ")
    assert len(told.stderr.strip().splitlines()) <= 2


def test_a_module_that_raises_on_import_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    told = fairlap("time", "broken:f", cwd=tmp_path)
    assert told.returncode == 2
    assert "importing broken raised ZeroDivisionError" in told.stderr


def test_what_was_sampled_before_an_exception_is_still_printed(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("n = 0\ndef f():\n    global n\n    n += 1\n    assert n < 50\n")
    told = fairlap("time", "later:f", "--samples", "100", "--warmup", "0", cwd=tmp_path)
    assert told.returncode == 2
    assert "49 of 1 call each" in told.stdout
    assert "AssertionError" in told.stderr


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" in fairlap("--debug", "time", "math:sin").stderr


def test_an_unknown_option_is_named() -> None:
    told = fairlap("time", "os:getpid", "--sampels", "3")
    assert told.returncode == 2
    assert "--sampels" in told.stderr


def test_ctrl_c_prints_what_was_sampled_and_exits_130(tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(
        "import itertools, pathlib\n"
        "calls = itertools.count()\n"
        "def call():\n"
        "    if next(calls) == 100000:\n"
        "        pathlib.Path('sampling').touch()\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "time", "counted:call", "--seconds", "300"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    while not (tmp_path / "sampling").exists():
        assert running.poll() is None
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGINT)
    told, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "stopped by interrupt" in told


def test_importing_fairlap_loads_neither_engine_nor_numpy_nor_framework() -> None:
    code = "import sys, fairlap; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert not loaded & {"numpy", "scipy", "torch", "jax", "tensorflow", "fairlap.engine._native", "click", "rich"}


def test_help_loads_neither_engine_nor_numpy() -> None:
    code = (
        "import sys\nfrom fairlap.cli import cli\n"
        "try:\n    cli.main(['--help'], standalone_mode=True)\n"
        "except SystemExit:\n    print('loaded', *sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "Commands:" in told
    loaded = set(told.rpartition("loaded")[2].split())
    assert not loaded & {"numpy", "fairlap.engine._native", "rich", "asyncio"}


def test_python_dash_m_and_version_agree_with_the_package() -> None:
    import fairlap as package

    assert fairlap("--version").stdout.strip() == f"fairlap {package.__version__}"


def test_debug_shows_the_traceback_wherever_it_stands() -> None:
    for arguments in (("--debug", "time", "math:pi"), ("time", "math:pi", "--debug")):
        told = fairlap(*arguments)
        assert told.returncode != 0
        assert "Traceback" in told.stderr
        assert "InvalidRequest" in told.stderr
