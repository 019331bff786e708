"""The hash of a folder changes with its code, and with nothing that tools leave in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fairlap.machine.files.folder_hash import folder_hash


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pk").mkdir()
    (tmp_path / "pk" / "hot.py").write_text("def fn(): ...\n")
    (tmp_path / "link").symlink_to("pk/hot.py")
    return tmp_path


def _changed(folder: Path) -> None:
    (folder / "pk" / "hot.py").write_text("def fn(): ..\n")


def _added(folder: Path) -> None:
    (folder / "pk" / "new.py").touch()


def _renamed(folder: Path) -> None:
    (folder / "pk" / "hot.py").rename(folder / "pk" / "cold.py")


def _executable(folder: Path) -> None:
    (folder / "pk" / "hot.py").chmod(0o755)


def _linked_elsewhere(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("pk")


@pytest.mark.parametrize("change", [_changed, _added, _renamed, _executable, _linked_elsewhere])
def test_it_changes_with_the_code(folder: Path, change: Callable[[Path], None]) -> None:
    before = folder_hash(folder)
    change(folder)
    assert folder_hash(folder) != before


@pytest.mark.parametrize("name", [".git/HEAD", "pk/__pycache__/hot.cpython-312.pyc", ".pytest_cache/x", "pk/hot.pyc"])
def test_version_control_bytecode_and_caches_do_not_count(folder: Path, name: str) -> None:
    before = folder_hash(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert folder_hash(folder) == before


def test_a_copy_in_another_place_has_the_same_hash_and_a_loop_of_links_ends(folder: Path) -> None:
    import shutil

    (folder / "loop").symlink_to(".")
    shutil.copytree(folder, folder.parent / "copy", symlinks=True)
    assert folder_hash(folder.parent / "copy") == folder_hash(folder)
