"""The git revision of the working folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fairlap.machine.git_revision import _BRANCH_OF_CI, revision_facts

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
    assert revision_facts(tmp_path) == {"git revision": revision, "git changes": "none", "git branch": "main"}
    (tmp_path / "file").write_text("two")
    assert revision_facts(tmp_path)["git changes"] == "1 changed files"


@needs_git
def test_a_commit_without_a_branch_has_the_one_that_a_ci_service_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in _BRANCH_OF_CI:
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "first")
    git(tmp_path, "checkout", "--detach")
    assert "git branch" not in revision_facts(tmp_path)
    monkeypatch.setenv("GITHUB_REF_NAME", "7/merge")
    assert revision_facts(tmp_path)["git branch"] == "7/merge"
    monkeypatch.setenv("GITHUB_HEAD_REF", "faster-parser")
    assert revision_facts(tmp_path)["git branch"] == "faster-parser"


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
    monkeypatch.setattr("fairlap.machine.git_revision._LONGEST_S", 0.2)
    assert revision_facts(tmp_path) == {}


@needs_git
def test_no_program_that_a_checkout_names_is_run(tmp_path: Path) -> None:
    tree, owned = tmp_path / "tree", tmp_path / "owned"
    tree.mkdir()
    git(tree, "init")
    (tree / "file").write_text("one")
    (tree / "other").write_text("x" * 100)
    git(tree, "add", ".")
    git(tree, "commit", "-m", "first")
    (tree / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\necho $0 $* >> {owned}\ncat\n")
    program.chmod(0o755)
    for name in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "credential.helper",
        "gpg.program",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
        "alias.ls-files",
        "alias.rev-parse",
    ):
        git(tree, "config", name, f"!{program}" if name.startswith("alias") else str(program))
    git(tree, "config", "filter.evil.required", "true")
    hooks = tree / ".git" / "hooks"
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-commit"):
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    (tree / "file").write_text("two")  # of the same size, in the same moment
    (tree / "other").touch()
    owned.unlink(missing_ok=True)
    assert revision_facts(tree)["git changes"] == "1 changed files"
    assert not owned.exists(), owned.read_text()
    subprocess.run(["git", "-C", str(tree), "status"], capture_output=True, check=False)
    assert owned.exists()  # which shows that the attack works


@needs_git
def test_staged_deleted_and_linked_files_count_and_touched_ones_do_not(tmp_path: Path) -> None:
    git(tmp_path, "init")
    for name in ("staged", "deleted", "touched", "mode", "a b\n\xfc"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("touched")
    (tmp_path / "sub").mkdir()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    assert revision_facts(tmp_path)["git changes"] == "none"
    (tmp_path / "touched").touch()
    assert revision_facts(tmp_path)["git changes"] == revision_facts(tmp_path / "sub")["git changes"] == "none"
    (tmp_path / "staged").write_text("other")
    git(tmp_path, "add", ".")
    (tmp_path / "deleted").unlink()
    (tmp_path / "mode").chmod(0o755)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("staged")
    assert revision_facts(tmp_path)["git changes"] == "4 changed files"
