"""Control groups with a limit: created where the kernel allows it, removed again, else a reason.

The kernel is simulated: creating a folder puts the files of a group into it, and removing it removes them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fairlap.launch import memory_groups
from fairlap.launch.memory_groups import groups_here, limited_group, started_in

VERSION_2 = ("memory.max", "memory.swap.max", "cgroup.procs")
VERSION_1 = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "cgroup.procs")

Kernel = Callable[[Sequence[str]], Path]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Fake the kernel in a folder below which groups have these files."""
    files: list[str] = []
    mkdir, rmdir = os.mkdir, os.rmdir

    def make(path: Path) -> None:
        mkdir(path)
        for name in files:
            (path / name).write_text("")

    def remove(path: Path) -> None:
        for name in files:
            (path / name).unlink()
        rmdir(path)

    monkeypatch.setattr(os, "mkdir", make)
    monkeypatch.setattr(os, "rmdir", remove)
    monkeypatch.setattr(memory_groups, "_has_swap", lambda: True)
    monkeypatch.setenv(memory_groups.CHOSEN, str(tmp_path))

    def having(names: Sequence[str]) -> Path:
        files[:] = names
        return tmp_path

    return having


@pytest.mark.parametrize(("names", "swap"), [(VERSION_2, "0"), (VERSION_1, "1000000")])
def test_a_group_has_its_limit_and_no_swap(kernel: Kernel, names: Sequence[str], swap: str) -> None:
    folder = kernel(names)
    assert groups_here().folder == folder
    with limited_group(folder, 1_000_000) as group:
        assert (group / names[0]).read_text() == "1000000"
        assert (group / names[1]).read_text() == swap
    assert list(folder.iterdir()) == []


def test_a_process_joins_the_group_before_it_runs_its_command(kernel: Kernel) -> None:
    with limited_group(kernel(VERSION_2), 1_000_000) as group:
        command = started_in(group, ("/bin/sh", "-c", 'echo "$$ $1"', "sh", "a word's own"))
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert printed == f"{(group / 'cgroup.procs').read_text().strip()} a word's own\n"


def test_groups_without_a_memory_limit_are_not_used(kernel: Kernel) -> None:
    folder = kernel(("cgroup.procs",))
    found = groups_here()
    assert found.folder is None
    assert "controller" in found.absent
    assert list(folder.iterdir()) == []


def test_groups_that_could_swap_are_not_used(kernel: Kernel) -> None:
    folder = kernel(("memory.max", "cgroup.procs"))
    assert "swap" in groups_here().absent
    assert list(folder.iterdir()) == []


def test_a_folder_in_which_no_group_can_be_created_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory_groups.CHOSEN, "/proc/nowhere")
    assert "/proc/nowhere" in groups_here().absent
    monkeypatch.setenv(memory_groups.CHOSEN, "none")
    assert groups_here().absent.startswith("FAIRLAP_CONTROL_GROUP")
