"""The engine is compiled in place with any compiler; here one that only touches what it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu.proof import building

_COMPILER = """#!/bin/sh
echo "$@" >> {log}
while [ "$1" != "-o" ]; do shift; done
case "$*" in *{fails}*) echo "x.cpp:1: error: no such thing" >&2; exit 1 ;; esac
: > "$2"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Log what the compiler was asked to do, a line each."""
    monkeypatch.setattr(building, "module_file", lambda: tmp_path / "_native.so")
    for package in ("torch", "pybind11"):
        (tmp_path / package / "include/pybind11").mkdir(parents=True)
        (tmp_path / package / "include/pybind11/pybind11.h").touch()
    monkeypatch.setattr(building, "_of_package", lambda name: [str(tmp_path / name / "include")])
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(building.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})  # type: ignore[attr-defined]
    return use_compiler(tmp_path, monkeypatch)


def use_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str = "nowhere") -> Path:
    compiler = tmp_path / "compiler"
    compiler.write_text(_COMPILER.format(log=tmp_path / "log", fails=fails))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return tmp_path / "log"


def test_every_source_is_compiled_once_and_the_module_linked_from_all(log: Path, tmp_path: Path) -> None:
    said: list[str] = []
    assert building.build_module(said.append).exists()
    *compiled, linked = log.read_text().splitlines()
    sources = building._sources()
    assert len(compiled) == len(sources) > 40
    assert all("-std=c++20" in line and str(tmp_path / "pybind11") in line for line in compiled)
    assert linked.count(".o ") == len(sources)
    assert len(said) == 1
    building.build_module(said.append)
    assert len(log.read_text().splitlines()) == len(sources) + 1  # it is newer than its sources


def test_a_source_that_does_not_compile_is_named_with_its_first_error(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_compiler(tmp_path, monkeypatch, fails="/0.o")
    with pytest.raises(building.CannotBuild, match="error: no such thing") as failed:
        building.build_module(lambda _: None)
    assert building._sources()[0].name in str(failed.value)
    assert not (tmp_path / "_native.so").exists()


@pytest.mark.usefixtures("log")
def test_what_is_missing_to_compile_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(building.HEADERS, str(tmp_path / "elsewhere"))
    with pytest.raises(building.CannotBuild, match="elsewhere"):
        building.build_module(lambda _: None)
    (tmp_path / "Python.h").unlink()
    with pytest.raises(building.CannotBuild, match=r"Python\.h"):
        building.build_module(lambda _: None)
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(building.CannotBuild, match="no C\\+\\+ compiler"):
        building.build_module(lambda _: None)
