"""git without this process's secrets, and without what a repository's own configuration would run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from fairlap.errors import last_line, shortened
from fairlap.machine.programs.passed_environment import own_environment

LIMIT_S = 600.0
_WHY = re.compile(r"^(?:fatal|error): (.+)", re.MULTILINE)
_HARMLESS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")


def run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git with the user's ``GIT_*`` variables, which may hold a login. Raises FileNotFoundError, TimeoutExpired.

    Filters of the repository may run; those of the user, such as of git-lfs, are wanted.
    """
    return subprocess.run(
        ["git", *_HARMLESS, *arguments],
        cwd=folder,
        env=own_environment([name for name in os.environ if name.startswith("GIT_")]),
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
        check=False,
    )


def reason_of_git(printed: str) -> str:
    """Find why git failed in what it printed, whose last lines are often advice."""
    found = _WHY.search(printed)
    return shortened(found[1] if found else last_line(printed)) or "it gave no reason"
