"""Folders of processes that were killed are removed by the next one, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fairlap.machine.files import scratch_folder
from fairlap.machine.files.scratch_folder import ScratchFolder, remove_abandoned

HOLDS_ONE = """
import sys, time
from fairlap.machine.files.scratch_folder import ScratchFolder
folder = ScratchFolder()
print(folder.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_stays() -> None:
    running = subprocess.Popen([sys.executable, "-c", HOLDS_ONE], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    with running.stdout:
        folder = Path(running.stdout.readline().strip())
    (folder / "caches").mkdir()
    (folder / "caches" / "kept").write_text("of a compiler")
    remove_abandoned()
    assert (folder / "caches" / "kept").exists()
    running.send_signal(signal.SIGKILL)
    running.wait(timeout=60)
    remove_abandoned()
    assert not folder.exists()


def test_abandoned_folders_in_shared_memory_are_removed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_folder, "SHARED_MEMORY", tmp_path / "shm")
    abandoned = tmp_path / "shm" / "fairlap-of-a-killed-process"
    abandoned.mkdir(parents=True)
    (abandoned / ".in-use").touch()
    with ScratchFolder(tmp_path / "shm") as held:
        remove_abandoned()
        assert list((tmp_path / "shm").iterdir()) == [held]


def test_a_folder_of_this_process_stays_until_its_end() -> None:
    with ScratchFolder() as folder:
        remove_abandoned()
        (folder / "file").write_text("in use")
    assert not folder.exists()


def test_folders_without_a_lock_and_links_are_left_alone(own_folder: Path) -> None:
    (own_folder / "fairlap-of-another").mkdir()
    (own_folder / "fairlap-of-another" / "file").write_text("precious")
    with tempfile.TemporaryDirectory() as elsewhere:
        Path(elsewhere, ".in-use").touch()
        (own_folder / "fairlap-link").symlink_to(elsewhere)
        (own_folder / "fairlap-of-another" / ".in-use").symlink_to(Path(elsewhere, ".in-use"))
        remove_abandoned()
        assert Path(elsewhere, ".in-use").exists()
    assert (own_folder / "fairlap-of-another" / "file").exists()


def test_a_folder_is_private_and_links_in_its_place_are_not_followed(own_folder: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        scratch = ScratchFolder()
    finally:
        os.umask(before)
    assert scratch.path.stat().st_mode & 0o777 == 0o700
    target = tmp_path / "target"
    target.mkdir()
    (target / ".in-use").touch()
    (target / "precious").touch()
    link = scratch.path.parent / "fairlap-link"
    link.symlink_to(target)
    linked = scratch.path.parent / "fairlap-with-link"
    linked.mkdir()
    (linked / ".in-use").symlink_to(target / "precious")
    remove_abandoned()
    assert (target / "precious").exists()
    assert linked.is_dir()
    scratch.remove()
