"""Output that cannot be written is one clear error with a non-zero exit status; JSON is alone on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import error_code, fairlap, here

pytestmark = pytest.mark.sanitized

LONG = ("time", "os:getpid", "--samples", "20000", "--json", "--raw")  # more than any buffer holds
COMMANDS = [("floor",), ("time", "os:getpid", "--samples", "10"), LONG, ("--version",)]

UNPRINTABLE = """
class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")

calls = 0

def work():
    global calls
    calls += 1
    if calls > 20:
        raise Unprintable
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


@pytest.mark.slow_but("10->", "raw->&-", "--version")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-"])
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk_or_a_closed_output_is_one_error_and_status_1(arguments: tuple[str, ...], redirection: str) -> None:
    done = fairlap(*arguments, after=redirection)
    assert (done.returncode, error_code(done)) == (1, "E_FILE")


@pytest.mark.slow_but(first=1)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_off_half_way_is_one_error_and_status_1(tmp_path: Path, unbuffered: str) -> None:
    done = fairlap(*LONG, cwd=tmp_path, after="> short.json", before="ulimit -f 100;", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, error_code(done)) == (1, "E_FILE")
    assert (tmp_path / "short.json").stat().st_size > 0


@pytest.mark.parametrize(
    ("ending", "code", "sampled"), [("", "E_CALLABLE_RAISED", True), ("\nraise Unprintable\n", "E_REQUEST", False)]
)
def test_an_exception_whose_text_cannot_be_shown_is_one_error_and_status_2(
    tmp_path: Path, ending: str, code: str, sampled: bool
) -> None:
    (tmp_path / "rude.py").write_text(UNPRINTABLE + ending)
    done = fairlap("time", "rude:work", "--samples", "100", "--warmup", "0", cwd=tmp_path)
    assert (done.returncode, error_code(done)) == (2, code)
    assert "Unprintable" in done.stderr
    assert ("20 of 1 call each" in done.stdout) is sampled


@pytest.mark.slow_but("5-samples")
@pytest.mark.parametrize(("samples", "stopped_by", "status"), [(5, "samples", 0), (100, "raised", 2)])
def test_json_is_alone_on_standard_output_though_the_callable_prints(
    tmp_path: Path, samples: int, stopped_by: str, status: int
) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    done = fairlap("time", "loud:work", "--samples", samples, "--warmup", "0", "--json", cwd=tmp_path)
    assert done.returncode == status
    assert json.loads(done.stdout)["stopped_by"] == stopped_by
    for text, count in (("at import\n", 1), ("printed\n", min(samples, 21)), ("from C\n", min(samples, 21))):
        assert done.stderr.count(text) == count


def test_without_json_what_the_callable_prints_stays_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    done = fairlap("time", "loud:work", "--samples", "5", "--warmup", "0", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("printed\n") == done.stdout.count("written\n") == 5


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["time", "math:pi", "--json"], "E_REQUEST"),
        (["time", "--json", "--sampels", "3", "math:pi"], "E_USAGE"),
        (["time", "--json", "--samples", "x", "math:pi"], "E_REQUEST"),
        (["time", "--json"], "E_USAGE"),
        (["time", "--json", "--blocks", "6", "os:getpid"], "E_REQUEST"),
        (["time", "--json", "--samples", "6", "os:getpid", "os:getppid"], "E_REQUEST"),
        (["time", "--json", "os:getpid", "os:getpid"], "E_REQUEST"),
        (["compare", "--json", "mlp", "--on", "torch", "--target", "200%"], "E_REQUEST"),
        (["compare", "--json", "mlp", "--on", "torch:a:b"], "E_CONTESTANT"),
        (["gate", "nowhere.json", "--baseline", "a", "--json"], "E_REQUEST"),
    ],
)
def test_with_json_an_error_is_a_document_too(arguments: list[str], code: str) -> None:
    done = here(*arguments)
    assert json.loads(done.stdout)["error"]["code"] == code
    assert json.loads(done.stdout)["error"]["message"] in done.stderr


SEVERAL = "def fast():\n    sum(range(200))\n\n\ndef slow():\n    sum(range(1000))\n"


@pytest.mark.slow
def test_several_callables_are_compared_until_decided(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL)
    both = ("several:slow", "several:fast")
    done = fairlap("time", *both, "--json", "--raw", "-o", "found.json", cwd=tmp_path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert json.loads((tmp_path / "found.json").read_text()) == found
    (comparison,) = found["comparisons"]
    assert (comparison["a"], comparison["b"], comparison["verdict"]) == ("several:slow", "several:fast", "slower")
    assert comparison["decided_after_blocks"] <= found["blocks"]
    assert comparison["evidence"] == "within one process"
    assert [len(row["block_medians_ns"]) for row in found["rows"]] == [found["blocks"]] * 2
    assert [row["name"] for row in found["rows"]] == ["several:fast", "several:slow"]


@pytest.mark.slow
def test_several_callables_run_a_fixed_number_of_blocks(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL)
    options = ("--blocks", "6", "--seconds", "2ms", "--seed", "5", "--margin", "1%", "--baseline", "several:slow")
    found = json.loads(fairlap("time", "several:slow", "several:fast", "--json", *options, cwd=tmp_path).stdout)
    assert (found["blocks"], found["seed"], found["seconds"], found["baseline"]) == (6, 5, 0.002, "several:slow")
    assert (found["until_decided"], found["comparisons"][0]["margin"]) == (False, 0.01)
    assert "block_medians_ns" not in found["rows"][0]


@pytest.mark.slow
def test_one_of_several_callables_that_raises_is_named(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL + "\n\ndef broken():\n    raise ValueError\n")
    done = fairlap("time", "several:fast", "several:broken", "--json", cwd=tmp_path)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "E_CALLABLE_RAISED"
    assert "several:broken" in error["message"]
