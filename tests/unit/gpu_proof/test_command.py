"""The command reports why it cannot run, and selects the parts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu.proof import building
from gpu.proof.__main__ import main
from gpu.proof.building import CannotBuild, build_module
from gpu.proof.machine import ROOT, file_name
from gpu.proof.parts import PARTS, parts_named


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
    assert run.stderr.strip() == (
        "gpu-proof: no NVIDIA GPU: /nowhere/libcuda.so.1 cannot be opened: no NVIDIA driver is installed"
    )


def test_parts_are_named_by_number_and_range() -> None:
    assert [part.number for part in parts_named("4, 1-2")] == [1, 2, 4]
    assert parts_named("") == PARTS


@pytest.mark.parametrize("text", ["x", "1-", "8", "0"])
def test_unknown_parts_are_refused_before_anything_runs(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--parts", text]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_every_part_has_a_module_and_less_than_ten_minutes() -> None:
    for part in PARTS:
        assert (ROOT / f"{part.module.replace('.', '/')}.py").exists()
        assert part.seconds + 20 < 600


def test_the_file_of_a_device_is_named_after_it() -> None:
    assert file_name("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"


def test_without_a_compiler_the_build_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "module_file", lambda: tmp_path / "_native.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(CannotBuild, match="no C\\+\\+ compiler"):
        build_module(lambda _: None)


def test_without_pybind11_the_build_names_the_variable_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "module_file", lambda: tmp_path / "_native.so")
    monkeypatch.setenv(building.HEADERS, str(tmp_path))
    with pytest.raises(CannotBuild, match=building.HEADERS):
        build_module(lambda _: None)


def test_a_source_that_does_not_compile_is_named_with_the_compiler_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.cpp"
    broken.write_text("int broken( {\n")
    monkeypatch.setattr(building, "module_file", lambda: tmp_path / "_native.so")
    monkeypatch.setattr(building, "_sources", lambda: [broken])
    with pytest.raises(CannotBuild, match=r"broken\.cpp did not compile: .*error"):
        build_module(lambda _: None)


def test_a_module_that_is_newer_than_its_sources_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "_native.so"
    there.write_text("")
    monkeypatch.setattr(building, "module_file", lambda: there)
    monkeypatch.setenv("PATH", str(tmp_path))  # a compiler would not be found
    assert build_module(lambda _: None) == there


def test_a_folder_of_the_engine_that_the_release_compiles_is_compiled_in_place_too() -> None:
    """The build in place takes whole folders; CMake takes lists. They must be the same files."""
    listed = {
        (cmake.parent / line.strip()).relative_to(ROOT)
        for cmake in (ROOT / "cpp").glob("*/CMakeLists.txt")
        if cmake.parent.name not in ("fakes", "tests")
        for line in cmake.read_text().replace(")", "\n").split()
        if line.strip().endswith(".cpp")
    }
    assert {source.relative_to(ROOT) for source in building._sources()} == listed
