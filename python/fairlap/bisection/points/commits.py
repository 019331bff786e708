"""The commits between two ends, along first parents: what was merged counts as the merge."""

from __future__ import annotations

from pathlib import Path

from fairlap.bisection.bisect_request import E_BISECT
from fairlap.bisection.points.history import History, Point
from fairlap.errors import InvalidRequest
from fairlap.pull_request.checkouts import git

_BETWEEN_FIELDS = "\x1f"
_FORMAT = f"--format=%H{_BETWEEN_FIELDS}%P{_BETWEEN_FIELDS}%aI{_BETWEEN_FIELDS}%s"
_SHORT = 10


def commits_between(folder: Path, good: str, bad: str) -> History:
    top = git(folder, "rev-parse", "--show-toplevel")
    if top.returncode:
        raise InvalidRequest(f"{folder.absolute()} is not in a git repository", code=E_BISECT)
    repository = Path(top.stdout.removesuffix("\n"))
    ends = _resolved(repository, "--good", good), _resolved(repository, "--bad", bad)
    if git(repository, "merge-base", "--is-ancestor", *ends).returncode:
        raise InvalidRequest(
            f"{good} is not an ancestor of {bad}, so no commit between them can be named", code=E_BISECT
        )
    listed = git(
        repository, "log", "--first-parent", "--reverse", "--no-show-signature", _FORMAT, f"{ends[0]}..{ends[1]}"
    )
    first = git(repository, "log", "--max-count=1", "--no-show-signature", _FORMAT, ends[0])
    if listed.returncode or first.returncode:
        raise InvalidRequest(f"git cannot list the commits between {good} and {bad}", code=E_BISECT)
    commits = tuple(_commit(line) for line in (*first.stdout.split("\n"), *listed.stdout.split("\n")) if line)
    if len(commits) < 2:
        raise InvalidRequest(f"there is no commit between {good} and {bad}", code=E_BISECT)
    return History(commits, str(repository))


def _resolved(repository: Path, option: str, name: str) -> str:
    found = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode:
        raise InvalidRequest(f"{option}: the repository has no commit {name!r}", code=E_BISECT)
    return found.stdout.strip()


def _commit(line: str) -> Point:
    sha, parents, author_date, subject = line.split(_BETWEEN_FIELDS, 3)
    return Point(sha, sha[:_SHORT], subject, author_date, len(parents.split()) > 1)
