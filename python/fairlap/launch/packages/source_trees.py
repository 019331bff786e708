"""Sources of packages before they are built: the project in a folder, and commits of repositories."""

from __future__ import annotations

import configparser
import fcntl
import hashlib
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlap.errors import FairlapError, shortened
from fairlap.machine.files.folder_hash import code_files, folder_hash
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.machine.programs.git import LIMIT_S, reason_of_git, run_git

_PROJECT = "pyproject.toml"
_HEAD = "refs/fairlap/HEAD"  # what is checked out in the repository itself now
_OWN_HEAD = re.compile(r"^HEAD(?=$|[~^])")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


class NotBuilt(FairlapError):
    """A contestant's package cannot be built from its source."""

    code = "E_BUILD"


def project_in(folder: Path) -> str:
    """Name the project of a folder."""
    try:
        content = (folder / _PROJECT).read_bytes()
    except OSError:
        raise NotBuilt(f"{folder} has no {_PROJECT}, so pip cannot build a package from it") from None
    setup = folder / "setup.cfg"
    return _name_in(content, setup.read_text(errors="replace") if setup.is_file() else "", str(folder))


def copy_tree(folder: Path, tree: str, into: Path) -> None:
    """Copy what counts of a folder, which a build may then write into. Raises for a folder that has changed."""
    if not folder.is_dir():
        raise NotBuilt(f"{folder} is not here any more")
    for path in code_files(folder):
        copy = into / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)
    if folder_hash(into) != tree:
        raise FairlapError(
            f"the files of {folder} are not those that the race was planned with (SHA-256 {tree[:10]}...); plan it "
            "again, or restore them",
            code="E_SOURCE_CHANGED",
        )


def commit_of(repository: str, revision: str) -> tuple[str, str]:
    """Find the whole name of a commit and its project, in a copy of the repository that is brought up to date."""
    with _held_copy(repository) as copy:
        commit = _resolved(copy, revision) if _is_whole(revision) else None
        if commit is None:  # a branch may have moved since
            fetched = _git(copy, repository, "fetch", "--quiet", "--force", "--prune", "origin")
            if fetched.returncode:
                raise NotBuilt(f"git cannot fetch {repository}: {reason_of_git(fetched.stderr)}")
            _git(copy, repository, "fetch", "--quiet", "--force", "origin", f"+HEAD:{_HEAD}")
            commit = _resolved(copy, _OWN_HEAD.sub(_HEAD, revision))
            if commit is None and _is_whole(revision):  # on no branch
                _git(copy, repository, "fetch", "--quiet", "origin", revision)
                commit = _resolved(copy, revision)
        if commit is None:
            raise NotBuilt(f"{repository} has no commit {revision!r}")
        files = {name: _git(copy, repository, "show", f"{commit}:{name}") for name in (_PROJECT, "setup.cfg")}
    if files[_PROJECT].returncode:
        raise NotBuilt(f"{revision} of {repository} has no {_PROJECT}, so pip cannot build a package from it")
    setup = files["setup.cfg"]
    where = f"{revision} of {repository}"
    return commit, _name_in(files[_PROJECT].stdout.encode(), "" if setup.returncode else setup.stdout, where)


def check_out(repository: str, commit: str, into: Path) -> None:
    """Write the commit's files, with their history, from which some builds take a version."""
    commit_of(repository, commit)
    with _held_copy(repository) as copy:
        cloned = _git(copy, repository, "clone", "--quiet", "--shared", "--no-checkout", str(copy), str(into))
    done = cloned if cloned.returncode else _git(into, repository, "checkout", "--quiet", "--detach", commit)
    if done.returncode:
        raise NotBuilt(f"{commit[:10]} of {repository} cannot be checked out: {reason_of_git(done.stderr)}")


def _git(folder: Path, repository: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return run_git(folder, *arguments)
    except FileNotFoundError:
        raise NotBuilt(f"git is not installed, so {repository} cannot be read") from None
    except subprocess.TimeoutExpired:
        raise NotBuilt(f"git {arguments[0]} of {repository} did not end within {LIMIT_S:g} s") from None


@contextmanager
def _held_copy(repository: str) -> Iterator[Path]:
    """Hold fairlap's own copy of a repository, cloned where it is missing; nothing is written into the original."""
    copies = work_cache() / "repositories"
    make_cache_folder(copies)
    copy = copies / hashlib.sha256(repository.encode()).hexdigest()[:16]
    with copy.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not copy.is_dir():
            made = copy.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            done = _git(copies, repository, "clone", "--quiet", "--mirror", "--", repository, str(made))
            if done.returncode:
                shutil.rmtree(made, ignore_errors=True)
                raise NotBuilt(f"git cannot clone {repository}: {reason_of_git(done.stderr)}")
            made.rename(copy)
        yield copy


def _resolved(copy: Path, revision: str) -> str | None:
    found = run_git(copy, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return found.stdout.strip() if found.returncode == 0 else None


def _is_whole(revision: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", revision) is not None


def _name_in(project: bytes, setup: str, where: str) -> str:
    """Find the name in ``pyproject.toml``, or in ``setup.cfg`` of older projects."""
    try:
        given = tomllib.loads(project.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NotBuilt(f"{_PROJECT} of {where} cannot be read: {shortened(str(error))}") from None
    older = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        older.read_string(setup)
    except configparser.Error:
        older.clear()
    of_setup = older.get("metadata", "name", fallback="")
    named = (_at(given, "project", "name"), _at(given, "tool", "poetry", "name"), of_setup)
    name = next((each for each in named if isinstance(each, str) and each), "")
    if not _NAME.fullmatch(name):
        raise NotBuilt(f"{_PROJECT} of {where} does not name its project: add name to its table [project]")
    return name


def _at(table: Any, *keys: str) -> Any:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table
