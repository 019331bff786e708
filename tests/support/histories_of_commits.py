"""A git repository with one commit after the other, of a callable that becomes slower at one of them."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path

SOURCE = """\
VERSION = {number}


def fn():
    total = 0
    for each in range({steps}):
        total += each % 7
    return 1
"""


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def history_of(
    folder: Path, commits: int, *, slow_from: int, broken: Collection[int] = (), steps: int = 20_000
) -> list[str]:
    """Commit a good end, tagged ``good``, and so many commits after it, and return their hashes in that order.

    The callable of ``hot.py`` takes 30 % longer from one of them on; the file ``state`` of broken ones says so.
    """
    folder.mkdir()
    git(folder, "init", "--quiet")
    hashes = []
    for number in range(commits + 1):
        factor = 1.3 if number >= slow_from else 1.0
        (folder / "hot.py").write_text(SOURCE.format(number=number, steps=int(factor * steps)))
        (folder / "state").write_text("broken\n" if number in broken else "fine\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"change {number}")
        hashes.append(git(folder, "rev-parse", "HEAD"))
    git(folder, "tag", "good", hashes[0])
    return hashes
