"""The command line: figures on standard output, one or two lines for every error, exit codes that mean something."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import error_code, fairlap, here

pytestmark = pytest.mark.sanitized


def test_floor_prints_the_floor_of_the_cpu_clock_and_why_there_is_no_device() -> None:
    done = here("floor")
    assert done.returncode == 0
    for word in ("cpu", "quantum", "overhead", "bias", "cuda"):
        assert word in done.stdout


def test_floor_as_json_has_the_promised_keys() -> None:
    floors = json.loads(here("floor", "--json").stdout)
    assert {"source", "quantum_ns", "overhead_ns", "bias_ns"} <= set(floors["cpu"])
    assert floors["cpu"]["quantum_ns"] > 0
    assert "cuda" in floors
    if floors["cuda"] is None:
        assert floors["cuda_absent"]


def test_time_prints_what_a_person_reads() -> None:
    done = here("time", "os:getpid", "--seconds", "0.05")
    assert done.returncode == 0
    assert done.stdout.startswith("os:getpid\n")
    assert "floor: quantum" in done.stdout


def test_time_as_json_can_hold_every_sample() -> None:
    done = json.loads(here("time", "os:getpid", "--samples", "30", "--json", "--raw").stdout)
    assert len(done["quantities"]["wall_ns"]["samples_ns"]) == 30
    assert done["stopped_by"] == "samples"


def test_time_finds_a_module_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Kept:\n    @staticmethod\n    def work():\n        return 1\n")
    assert fairlap("time", "mine:Kept.work", "--samples", "10", cwd=tmp_path).returncode == 0


@pytest.mark.slow_but("nonsense", "math:no_such", "broken:f")
@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("nonsense", "MODULE:CALLABLE"),
        ("broken.py:f", "broken:f"),
        ("./folder/broken.py:f", "broken:f in the folder folder"),
        ("no_such_module:f", "no_such_module"),
        ("math:no_such", "'no_such'"),
        ("math:pi", "float"),
        ("math:sin", "TypeError"),
        ("broken:f", "ZeroDivisionError"),
    ],
)
def test_a_wrong_target_is_named_with_a_code_and_exit_2(target: str, part: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    done = fairlap("time", target, cwd=tmp_path)
    assert done.returncode == 2
    assert error_code(done) == ("E_CALLABLE_RAISED" if target == "math:sin" else "E_REQUEST")
    assert part in done.stderr


def test_what_was_sampled_before_an_exception_is_still_printed(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("n = 0\ndef f():\n    global n\n    n += 1\n    assert n < 50\n")
    done = fairlap("time", "later:f", "--samples", "100", "--warmup", "0", cwd=tmp_path)
    assert done.returncode == 2
    assert "49 of 1 call each" in done.stdout
    assert "AssertionError" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("compare", "mlp", "--seed", "-1"), ("compare", "--nonsense"), ("compere",), ("show",)]
)
def test_a_usage_error_has_one_end_of_a_sentence(arguments: tuple[str, ...]) -> None:
    done = here(*arguments)
    assert done.returncode == 2
    assert not re.search(r"[.?!];", done.stderr), done.stderr


def test_an_unknown_option_is_named() -> None:
    done = here("time", "os:getpid", "--sampels", "3")
    assert (done.returncode, error_code(done)) == (2, "E_USAGE")
    assert "--sampels" in done.stderr


@pytest.mark.parametrize(("group", "command"), [("list", "models"), ("suite", "run")])
def test_a_group_of_commands_without_one_prints_its_help_line_by_line(group: str, command: str) -> None:
    done = here(group)
    shown = done.stderr or done.stdout  # of an older click
    assert "\\u" not in shown
    listed = shown.partition("Commands:")[2].splitlines()
    assert command in [line.split()[0] for line in listed if line.strip()]


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
    done, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "stopped by interrupt" in done


def test_importing_fairlap_loads_neither_engine_nor_numpy_nor_framework() -> None:
    code = "import sys, fairlap; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert not loaded & {"numpy", "scipy", "torch", "jax", "tensorflow", "fairlap.engine._native", "click", "rich"}


HELP_OF_EVERY_COMMAND = """
import contextlib, io, json, sys
import click
from fairlap.cli import cli

HEAVY = ("numpy", "fairlap.engine._native", "rich", "asyncio")
loaded = {}

def commands(command, path):
    yield path
    for name in command.list_commands(None) if isinstance(command, click.Group) else ():
        yield from commands(command.get_command(None, name), [*path, name])

for path in commands(cli, []):
    for option in ("--help", "-h"):
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main([*path, option], standalone_mode=False)
        loaded[" ".join([*path, option])] = [each for each in HEAVY if each in sys.modules]
print(json.dumps(loaded))
"""


def test_no_command_loads_the_engine_or_numpy_for_its_help() -> None:
    done = subprocess.run([sys.executable, "-c", HELP_OF_EVERY_COMMAND], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert {"--help", "time --help", "gate -h", "suite run --help"} <= set(loaded)
    assert {path: heavy for path, heavy in loaded.items() if heavy} == {}


def test_python_dash_m_and_version_agree_with_the_package() -> None:
    import fairlap as package

    assert fairlap("--version").stdout.strip() == f"fairlap {package.__version__}"


def test_debug_adds_the_traceback_wherever_it_stands_and_changes_nothing_else() -> None:
    plain = here("time", "math:pi")
    for arguments in (("--debug", "time", "math:pi"), ("time", "math:pi", "--debug")):
        done = here(*arguments)
        assert done.returncode == plain.returncode == 2
        assert "Traceback" in done.stderr
        assert "InvalidRequest" in done.stderr
        assert done.stderr.endswith(plain.stderr)
