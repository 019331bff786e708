"""The base of a change, checked out beside it by git, and both prepared by the same command."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlap.errors import FairlapError, shortened
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.machine.programs.git import LIMIT_S, run_git
from fairlap.machine.programs.guarded_command import run_guarded
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.pull_request.event import PullRequest


class NoBaseline(FairlapError):
    """The base of the change cannot be had, or cannot be prepared; there is nothing to compare with."""

    code = "E_BASELINE"


class NotPrepared(FairlapError):
    """The command that prepares a checkout failed in the change itself."""

    code = "E_PREPARE"


@contextmanager
def base_checkout(change: Path, commit: str) -> Iterator[Path]:
    """Check out that commit into a folder, fetched where it is missing; the folder is gone afterwards."""
    if commit.startswith("-"):  # git would take it for an option
        raise NoBaseline(f"{commit!r} is not a commit")
    if git(change, "cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
        fetched = git(change, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", commit)
        commit = commit if fetched.returncode else "FETCH_HEAD"
        if fetched.returncode:
            raise NoBaseline(
                f"there is no commit {commit} here, and origin gave none; give --base a commit or a folder"
            )
    scratch = ScratchFolder()
    folder = scratch.path / "base"
    try:
        _require(
            git(change, "worktree", "add", "--quiet", "--detach", str(folder), commit),
            f"the base {commit} cannot be checked out",
        )
        yield folder
    finally:
        git(change, "worktree", "remove", "--force", str(folder))
        scratch.remove()
        git(change, "worktree", "prune")


def base_commit(change: Path, pull_request: PullRequest | None) -> str:
    """Find what the change is compared with.

    That is the first parent of a merge, which is the branch that it is merged into, as GitHub checks a pull request
    out; else the base that the event names. Empty where neither is known.
    """
    commit = git(change, "cat-file", "-p", "HEAD")
    head = commit.stdout.partition("\n\n")[0]
    parents = [line.removeprefix("parent ") for line in head.splitlines() if line.startswith("parent ")]
    if len(parents) > 1:  # also in a shallow clone, which has not the parents themselves
        return parents[0]
    return pull_request.base_commit if pull_request is not None else ""


def prepare(folder: Path, command: str, passed: Collection[str] = (), *, is_base: bool) -> None:
    """Run the shell's command in the folder, with the variables that contestants get.

    Its output goes to standard error, into the job's log.
    """
    status = run_guarded(["sh", "-c", command], folder, own_environment(passed))
    if status:
        which = "the base" if is_base else "the change"
        message = f"{command!r} failed in {which} with status {status}"
        raise NoBaseline(message) if is_base else NotPrepared(message)


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git without the job's secrets, and without what the checkout's own configuration would run.

    The change may have written hooks, a monitor and filters there, when its code ran.
    """
    try:
        return run_git(folder, *_without_filters(folder), *arguments)
    except FileNotFoundError:
        raise NoBaseline("git is not installed, so no commit can be checked out") from None
    except subprocess.TimeoutExpired:
        raise NoBaseline(f"git {arguments[0]} did not end within {LIMIT_S:g} s") from None


def _without_filters(folder: Path) -> list[str]:
    """Empty the filters of this repository; those of the user, such as of git-lfs, stay."""
    listed = run_git(folder, "config", "--local", "--name-only", "-z", "--get-regexp", r"^filter\.")
    drivers = sorted({name.rpartition(".")[0] for name in listed.stdout.split("\0") if name})
    settings = ("clean=", "smudge=", "process=", "required=false")
    return [word for driver in drivers for setting in settings for word in ("-c", f"{driver}.{setting}")]


def _require(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NoBaseline(f"{what}: {shortened(lines[-1]) if lines else f'git ended with {done.returncode}'}")
