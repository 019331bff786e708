"""The command reports why it cannot run, and selects the parts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from gpu.proof import building
from gpu.proof.__main__ import main
from gpu.proof.machine import ROOT
from gpu.proof.parts import PARTS, TOTAL_S, parts_named
from gpu.proof.running import GRACE_S


@pytest.mark.sanitized
def test_without_a_gpu_it_fails_with_one_line() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.gpu.proof"],
        env={**os.environ, "FAIRLAP_LIBCUDA": "/nowhere/libcuda.so.1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert "/nowhere/libcuda.so.1" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_parts_are_named_by_number_and_range() -> None:
    assert [part.number for part in parts_named("4, 1-2")] == [1, 2, 4]
    assert parts_named("") == PARTS
    assert [part.number for part in parts_named("race, truth")] == [2, 8]


@pytest.mark.parametrize("text", ["x", "1-", "10", "0"])
def test_unknown_parts_are_refused_before_anything_runs(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--parts", text]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_parts_take_less_than_half_an_hour_together_and_ten_minutes_each() -> None:
    others = [part for part in PARTS if part.name != "race"]
    assert sum(part.seconds + GRACE_S for part in others) + 240 <= TOTAL_S < 1800
    assert all(part.seconds + 2 * GRACE_S < 600 for part in PARTS)


@pytest.mark.parametrize("text", ["0", "5", "x", "1-2"])
def test_a_call_that_there_is_not_is_refused_before_anything_runs(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--call", text]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_make_prints_the_command_of_a_call_anywhere() -> None:
    run = subprocess.run(
        ["make", "-n", "gpu-proof", "CALL=1"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert "-m tests.gpu.proof --call 1" in run.stdout
    assert "--seconds" not in run.stdout  # a default of another target had replaced the limit of every part


def test_a_folder_of_the_engine_that_the_release_compiles_is_compiled_in_place_too() -> None:
    """The build in place takes whole folders; CMake takes lists. They must be the same files."""
    listed = {
        (cmake.parent / line.strip()).relative_to(ROOT)
        for cmake in (ROOT / "cpp").glob("*/CMakeLists.txt")
        if cmake.parent.name not in ("fakes", "tests")
        for line in cmake.read_text().replace(")", "\n").split()
        if line.strip().endswith(".cpp") and "(" not in line
    }
    assert {source.relative_to(ROOT) for source in building._sources()} == listed
