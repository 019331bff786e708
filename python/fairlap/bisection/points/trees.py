"""Trees of commits, each checked out and prepared once, in the cache until the search has ended.

They belong to a clone that shares the objects of the user's repository, so that nothing is written into that one, and
no configuration of it runs anything. All their paths are as long, since the length of a path alone moves memory.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path

from fairlap.bisection.bisect_request import E_BISECT, BisectRequest
from fairlap.bisection.bisection import ChangedPackage
from fairlap.bisection.points.history import History
from fairlap.errors import FairlapError, last_line, shortened
from fairlap.frameworks.registry import framework_named
from fairlap.judgement.own_checks import run_printing
from fairlap.machine.files.private_files import make_cache_folder
from fairlap.machine.files.user_folders import work_cache
from fairlap.machine.programs.git import reason_of_git
from fairlap.models.names import is_function
from fairlap.models.sources.callables.functions import SOURCES
from fairlap.pull_request.checkouts import git
from fairlap.request.names import contestant_named


class Unprepared(FairlapError):
    """A commit cannot be checked out, or the command that prepares it failed there."""

    code = "E_PREPARE"


class Trees:
    """``built`` are the commits whose trees are complete, also from an earlier part of the search.

    The side of a race that a commit is raced as is the folder of its tree.
    """

    def __init__(self, folder: Path, request: BisectRequest, history: History, built: set[str]) -> None:
        self.built = built
        self._folder, self._request, self._history = folder, request, history
        self._clone = folder / "repository"

    def side(self, sha: str, notify: Callable[[str], None]) -> Path:
        """Check the commit out and prepare it, unless that was done before."""
        tree = self._folder / "trees" / sha
        if sha in self.built and tree.is_dir():
            return tree
        self._clear(tree)
        self._check_out(sha, tree)
        if self._request.prepare:
            notify(f"preparing {sha[:10]}: {self._request.prepare}")
            status, printed = run_printing(self._request.prepare, tree, self._request.pass_env)
            if status:
                self._clear(tree)
                last = shortened(last_line(printed))
                why = f": {last}" if last else ""
                raise Unprepared(f"{self._request.prepare!r} failed in {sha[:10]} with status {status}{why}")
        self._require_own(sha, tree)
        self.built.add(sha)
        return tree

    def changed(self, before: str, after: str) -> tuple[ChangedPackage, ...]:
        """Nothing is installed for a commit but what its repository says itself."""
        return ()

    def _require_own(self, sha: str, tree: Path) -> None:
        """Refuse a tree that has neither the model nor the framework, so that each commit would race the same code."""
        asked = self._request.model
        if not asked.model:
            return
        modules = [framework_named(contestant_named(asked.on).framework).module.partition(".")[0]]
        modules += [asked.model.partition(":")[0].partition(".")[0]] if is_function(asked.model) else []
        places = [str(tree), str(tree / SOURCES)]
        if not any(PathFinder.find_spec(each, places) for each in modules):
            self._clear(tree)
            names = " nor ".join(modules)
            raise Unprepared(f"{sha[:10]} has no module {names} that could have changed", code=E_BISECT)

    def _check_out(self, sha: str, tree: Path) -> None:
        if not self._clone.is_dir():
            made = self._folder / "repository.new"
            shutil.rmtree(made, ignore_errors=True)
            source = self._history.of
            done = git(Path(source), "clone", "--quiet", "--shared", "--no-checkout", source, str(made))
            if done.returncode:
                raise FairlapError(f"git cannot clone {source}: {reason_of_git(done.stderr)}", code=E_BISECT)
            made.rename(self._clone)
        done = git(self._clone, "worktree", "add", "--quiet", "--force", "--detach", str(tree), sha)
        if done.returncode:
            self._clear(tree)
            raise Unprepared(f"{sha[:10]} cannot be checked out: {reason_of_git(done.stderr)}")

    def _clear(self, tree: Path) -> None:
        shutil.rmtree(tree, ignore_errors=True)


@contextmanager
def held_folder(key: str) -> Iterator[Path]:
    """Hold the folder of a search, which one process at a time may use; the lock's file stays beside it."""
    folder = work_cache() / "bisect" / key
    make_cache_folder(folder)
    with folder.with_suffix(".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FairlapError("another `fairlap bisect` of the same is running; wait for it", code=E_BISECT) from None
        make_cache_folder(folder)
        yield folder


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_suffix(".lock").unlink(missing_ok=True)
    with suppress(OSError):  # of other searches
        folder.parent.rmdir()
