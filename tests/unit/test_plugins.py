"""What installed packages add is found, also what is installed later, and metadata is read no more often than that."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

import pytest
from fairlap.plugins import places_in_packages
from installed_package import write_package

GROUP = "fairlap.frameworks"
OF_BEFORE_NS = 10**18  # the times of folders are those of ticks, and a test may take less than one


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a folder without a package on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    os.utime(tmp_path, ns=(OF_BEFORE_NS, OF_BEFORE_NS))
    return tmp_path


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the groups for which the metadata of all packages was read."""
    read, found = metadata.entry_points, list[str]()

    def counted(*, group: str) -> metadata.EntryPoints:
        found.append(group)
        return read(group=group)

    monkeypatch.setattr(metadata, "entry_points", counted)
    return found


def test_what_is_installed_or_removed_while_this_process_runs_is_seen(folder: Path) -> None:
    assert "late" not in places_in_packages(GROUP)
    info = write_package(folder, "late", {GROUP: {"late": "late_module:Late"}})
    assert places_in_packages(GROUP)["late"] == "late_module:Late"
    for file in info.iterdir():
        file.unlink()
    info.rmdir()
    os.utime(folder, ns=(OF_BEFORE_NS + 1, OF_BEFORE_NS + 1))
    assert "late" not in places_in_packages(GROUP)


def test_a_folder_that_comes_onto_the_path_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, "beside", {GROUP: {"beside": "beside_module:Beside"}})
    assert "beside" not in places_in_packages(GROUP)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert places_in_packages(GROUP)["beside"] == "beside_module:Beside"


def test_metadata_is_read_once_for_each_group_while_nothing_is_installed(folder: Path, readings: list[str]) -> None:
    write_package(folder, "once", {GROUP: {"once": "m:Once"}, "fairlap.workloads": {"model": "m"}})
    for _ in range(3):
        assert places_in_packages(GROUP)["once"] == "m:Once"
        assert places_in_packages("fairlap.workloads")["model"] == "m"
    assert readings == [GROUP, "fairlap.workloads"]


def test_what_a_caller_does_to_the_places_changes_them_for_no_other(folder: Path) -> None:
    write_package(folder, "own", {GROUP: {"own": "m:Own"}})
    places_in_packages(GROUP).clear()
    assert places_in_packages(GROUP)["own"] == "m:Own"
