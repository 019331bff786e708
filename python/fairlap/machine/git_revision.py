"""The git revision of the working folder, its branch, and how many of its files differ from it.

The folder may be somebody else's, and its configuration may name programs: filters, hooks, monitors, drivers, servers.
git is asked for its index and its trees alone, and never looks at a file of the folder, which would run the filters.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import time
from pathlib import Path

_LONGEST_S = 2.0  # for a huge tree on a slow disk
_LARGEST_BYTES = 2**26  # of a file that is read
_RUN_NOTHING = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "protocol.allow=never",  # what a partial clone lacks would be fetched, by programs that it names
    "safe.bareRepository=explicit",
)
_ENTRY = re.compile(
    rb"(?P<mode>\d{6}) (?P<hash>[0-9a-f]+) \d\t(?P<path>[^\0]*)\0\s+ctime: \d+:\d+\n\s+mtime: (?P<s>\d+):(?P<ns>\d+)\n"
    rb"\s+dev: [^\n]*\n\s+uid: [^\n]*\n\s+size: (?P<size>\d+)\tflags: [0-9a-f]+\n"
)
_SUBMODULE = b"160000"
# What CI services call the branch: they check out a commit, not a branch. That of a pull request comes first.
_BRANCH_OF_CI = (
    "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME",
    "BUILDKITE_BRANCH", "GIT_BRANCH",
)  # fmt: skip


def revision_facts(folder: Path) -> dict[str, str]:
    """Describe the revision of the tree; empty without git, outside a tree, or when it takes too long.

    Nothing in the tree is executed or written. A file that was touched and goes through a filter counts as changed,
    since only the filter could say that it is not.
    """
    ends_by_s = time.monotonic() + _LONGEST_S
    try:
        top, revision = _git(folder, "rev-parse", "--show-toplevel", "HEAD", ends_by_s=ends_by_s).split(b"\n")[:2]
        staged = _git(folder, "diff-index", "--cached", "--name-only", "-z", "HEAD", ends_by_s=ends_by_s).split(b"\0")
        index = _git(folder, "rev-parse", "--git-path", "index", ends_by_s=ends_by_s).rstrip(b"\n")
        written_ns = Path(folder, os.fsdecode(index)).stat().st_mtime_ns
        listed = _git(Path(os.fsdecode(top)), "ls-files", "--stage", "--debug", "-z", ends_by_s=ends_by_s)
        changed = {path for path in staged if path}
        for entry in _ENTRY.finditer(listed):
            if entry["mode"] != _SUBMODULE and not _is_same(top, entry, written_ns):
                changed.add(entry["path"])
            if time.monotonic() > ends_by_s:
                return {}
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    facts = {
        "git revision": revision.decode("ascii", "replace"),
        "git changes": f"{len(changed)} changed files" if changed else "none",
    }
    branch = _branch(folder, ends_by_s)
    return {**facts, "git branch": branch} if branch else facts


def _branch(folder: Path, ends_by_s: float) -> str:
    """Name the branch that is checked out, or that a CI service names; empty where neither is known."""
    try:
        return os.fsdecode(_git(folder, "symbolic-ref", "--quiet", "--short", "HEAD", ends_by_s=ends_by_s)).strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        return next(filter(None, (os.environ.get(name, "") for name in _BRANCH_OF_CI)), "")


def _git(folder: Path, *arguments: str, ends_by_s: float) -> bytes:
    settings = [word for setting in _RUN_NOTHING for word in ("-c", setting)]
    return subprocess.run(
        ["git", *settings, "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=max(0.0, ends_by_s - time.monotonic()),
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"},
        check=True,
    ).stdout


def _is_same(top: bytes, entry: re.Match[bytes], index_written_ns: int) -> bool:
    """By the times that git noted, unless the file may have been changed since in the same moment; else by content."""
    path = os.path.join(top, entry["path"])  # noqa: PTH118  (bytes)
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if found.st_size != int(entry["size"]) or stat.S_ISLNK(found.st_mode) != (entry["mode"] == b"120000"):
        return False
    if stat.S_ISREG(found.st_mode) and bool(found.st_mode & stat.S_IXUSR) != (entry["mode"] == b"100755"):
        return False
    noted_ns = int(entry["s"]) * 10**9 + int(entry["ns"])
    if found.st_mtime_ns == noted_ns and noted_ns < index_written_ns:
        return True
    return _hash_of(path, found, len(entry["hash"])) == entry["hash"]


def _hash_of(path: bytes, found: os.stat_result, digits: int) -> bytes:
    """git's, of a file as it is on the disk; empty where it is not read."""
    if stat.S_ISLNK(found.st_mode):
        content = os.readlink(path)  # noqa: PTH115  (bytes)
    elif stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BYTES:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(_LARGEST_BYTES)
    else:
        return b""
    kind = hashlib.sha1 if digits == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(content) + content).hexdigest().encode()
