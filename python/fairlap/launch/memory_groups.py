"""Control groups with a memory limit (version 1 or 2), created below the group of this process where that is allowed.

``FAIRLAP_CONTROL_GROUP`` names another parent group, or ``none``.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlap.machine.control_group import memory_groups

CHOSEN = "FAIRLAP_CONTROL_GROUP"
_LIMITS = {"memory.max": "memory.swap.max", "memory.limit_in_bytes": "memory.memsw.limit_in_bytes"}
_GONE_WITHIN_S = 2.0


@dataclass(frozen=True)
class GroupsHere:
    """Where groups can be created, or why they cannot."""

    folder: Path | None
    absent: str = ""


def groups_here() -> GroupsHere:
    """Find a group that can limit memory, by creating a group in it and removing it."""
    chosen = os.environ.get(CHOSEN, "")
    if chosen == "none":
        return GroupsHere(None, f"{CHOSEN} is none")
    why = "this process is not in a control group"
    for folder in [Path(chosen)] if chosen else [Path(f"/{group}") for group in memory_groups()]:
        try:
            with _made(folder) as group:
                why = _why_not_limited(group)
        except OSError as error:
            why = f"cannot create a control group in {folder}: {error.strerror}"
        if not why:
            return GroupsHere(folder)
    return GroupsHere(None, why)


@contextmanager
def limited_group(folder: Path, limit_bytes: int) -> Iterator[Path]:
    """Make a group with this limit and no swap; its processes must have ended before it is left."""
    with _made(folder) as group:
        limit, swap = _files_of(group)
        limit.write_text(str(limit_bytes))
        if swap.exists():
            swap.write_text("0" if limit.name == "memory.max" else str(limit_bytes))
        yield group


def started_in(group: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Let the command join the group first, so that all of its memory is counted there."""
    return ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *command)


@contextmanager
def _made(folder: Path) -> Iterator[Path]:
    group = folder / f"fairlap-{secrets.token_hex(8)}"
    os.mkdir(group)  # noqa: PTH102  (it must be new, and its parent must exist)
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Remove the group, with some patience, because the kernel needs a moment to release processes that have ended."""
    deadline_s = time.monotonic() + _GONE_WITHIN_S
    while True:
        try:
            os.rmdir(group)  # noqa: PTH106  (the kernel removes its files)
        except OSError:
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.02)
        else:
            return


def _files_of(group: Path) -> tuple[Path, Path]:
    """Find the files that set the memory limit and the swap limit."""
    limit = next((name for name in _LIMITS if (group / name).exists()), next(iter(_LIMITS)))
    return group / limit, group / _LIMITS[limit]


def _why_not_limited(group: Path) -> str:
    limit, swap = _files_of(group)
    if not limit.exists():
        return f"groups in {group.parent} have no memory limit: the controller is not enabled for them"
    if not swap.exists() and _has_swap():
        return f"groups in {group.parent} can use swap, which cannot be limited"
    return ""


def _has_swap() -> bool:
    try:
        return len(Path("/proc/swaps").read_text().splitlines()) > 1
    except OSError:
        return False
