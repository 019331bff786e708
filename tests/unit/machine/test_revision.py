"""The git revision of the working folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fairlap.machine.software import revision_facts

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@needs_git
def test_a_changed_tree_differs_from_a_clean_one(tmp_path: Path) -> None:
    git(tmp_path, "init")
    assert revision_facts(tmp_path) == {}  # no revision yet
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    revision = git(tmp_path, "rev-parse", "HEAD")
    assert revision_facts(tmp_path) == {"git revision": revision, "git changes": "none"}
    (tmp_path / "file").write_text("two")
    assert revision_facts(tmp_path)["git changes"] == "1 changed files"


@needs_git
def test_a_folder_outside_any_tree_has_no_revision(tmp_path: Path) -> None:
    assert revision_facts(tmp_path) == {}
    assert revision_facts(tmp_path / "none") == {}


def test_without_git_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision_facts(tmp_path) == {}


def test_a_hanging_git_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec sleep 30\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("fairlap.machine.software._LONGEST_S", 0.2)
    assert revision_facts(tmp_path) == {}
