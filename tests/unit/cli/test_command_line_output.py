"""Output that cannot be written is one clear line and a non-zero exit; JSON is alone on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sanitized

COMMANDS = [
    ("floor",),
    ("floor", "--json"),
    ("time", "os:getpid", "--samples", "10"),
    ("time", "os:getpid", "--samples", "20000", "--json", "--raw"),  # more than any buffer holds
    ("--version",),
]

RUDE = """
class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")

calls = 0

def work():
    global calls
    calls += 1
    if calls > 20:
        raise Unspeakable
"""

LOUD = """
import ctypes
import os

print("at import")
c_library = ctypes.CDLL(None)
calls = 0

def work():
    global calls
    calls += 1
    print("printed")
    c_library.printf(b"from C\\n")
    os.write(1, b"written\\n")
    if calls > 20:
        raise ValueError("enough")
"""


def fairlap(
    *arguments: str, cwd: Path | None = None, before: str = "", ending: str = ""
) -> subprocess.CompletedProcess[str]:
    """``before`` and ``ending`` are what a shell would have around the command, such as ``> /dev/full``."""
    return subprocess.run(
        ["sh", "-c", f'{before} "$@" {ending}', "sh", sys.executable, "-m", "fairlap", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk_is_one_clear_line_and_exit_1(arguments: tuple[str, ...]) -> None:
    told = fairlap(*arguments, ending="> /dev/full")
    assert told.returncode == 1
    assert told.stderr == "fairlap: No space left on device; the output was not written in full\n"


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_closed_output_is_one_clear_line_and_exit_1(arguments: tuple[str, ...]) -> None:
    told = fairlap(*arguments, ending=">&-")
    assert told.returncode == 1
    assert told.stderr == "fairlap: standard output is closed; the output was not written in full\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_off_half_way_is_one_clear_line_and_exit_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    long = ("time", "os:getpid", "--samples", "20000", "--json", "--raw")
    told = fairlap(*long, cwd=tmp_path, ending="> short.json", before="ulimit -f 100;")
    assert told.returncode == 1
    assert told.stderr == "fairlap: File too large; the output was not written in full\n"
    assert (tmp_path / "short.json").stat().st_size > 0


def test_an_exception_whose_text_cannot_be_shown_is_one_line_and_exit_2(tmp_path: Path) -> None:
    (tmp_path / "rude.py").write_text(RUDE)
    told = fairlap("time", "rude:work", "--samples", "100", "--warmup", "0", cwd=tmp_path)
    assert told.returncode == 2
    assert told.stderr == (
        "fairlap: rude:work raised Unspeakable (its text cannot be shown); the 20 samples before it are kept\n"
    )
    assert "20 of 1 call each" in told.stdout


def test_a_module_that_raises_an_exception_without_a_text_on_import_is_said(tmp_path: Path) -> None:
    (tmp_path / "rude.py").write_text(RUDE + "\nraise Unspeakable\n")
    told = fairlap("time", "rude:work", cwd=tmp_path)
    assert told.returncode == 2
    assert told.stderr == "fairlap: importing rude raised Unspeakable (its text cannot be shown)\n"


def test_json_stands_alone_on_standard_output_though_the_callable_prints(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    told = fairlap("time", "loud:work", "--samples", "5", "--warmup", "0", "--json", cwd=tmp_path)
    assert told.returncode == 0
    assert json.loads(told.stdout)["samples"] == 5
    assert told.stderr.count("at import\n") == 1
    for words in ("printed\n", "written\n", "from C\n"):
        assert told.stderr.count(words) == 5


def test_json_stands_alone_on_standard_output_though_the_callable_prints_and_raises(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    told = fairlap("time", "loud:work", "--samples", "100", "--warmup", "0", "--json", cwd=tmp_path)
    assert told.returncode == 2
    assert json.loads(told.stdout)["stopped_by"] == "raised"
    assert "ValueError: enough" in told.stderr


def test_without_json_what_the_callable_prints_stays_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    told = fairlap("time", "loud:work", "--samples", "5", "--warmup", "0", cwd=tmp_path)
    assert told.returncode == 0
    assert told.stdout.count("printed\n") == 5
    assert told.stdout.count("written\n") == 5
    assert told.stderr == ""
