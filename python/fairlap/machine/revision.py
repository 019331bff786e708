"""Which revision of which source tree the command ran in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_LONGEST_S = 2.0  # a huge tree on a slow disk is not waited for


def revision_facts(folder: Path) -> dict[str, str]:
    """Empty without git, outside a tree, or when git takes too long. Nothing in the tree is run or written."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", str(folder)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all"]
    try:
        told = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_S,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    if told.returncode != 0:
        return {}
    lines = told.stdout.decode(errors="replace").splitlines()
    revision = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    if not revision or revision == "(initial)":
        return {}
    changed = sum(not line.startswith("#") for line in lines)
    return {"git revision": revision, "git changes": f"{changed} changed files" if changed else "none"}
