"""Control groups with a limit of memory, of version 2 or 1, made below this process's own where the kernel lets us.

``FAIRLAP_CONTROL_GROUP`` names another group to make them in, or ``none``.
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
    """Where groups can be made, or why they cannot."""

    folder: Path | None
    absent: str = ""


def groups_here() -> GroupsHere:
    """Found out by making one and removing it."""
    chosen = os.environ.get(CHOSEN, "")
    if chosen == "none":
        return GroupsHere(None, f"{CHOSEN} is none")
    why = "this process has no control group of its own"
    for folder in [Path(chosen)] if chosen else [Path(f"/{group}") for group in memory_groups()]:
        try:
            with _made(folder) as group:
                why = _why_unlimited(group)
        except OSError as error:
            why = f"no control group can be made in {folder}: {error.strerror}"
        if not why:
            return GroupsHere(folder)
    return GroupsHere(None, why)


@contextmanager
def limited_group(folder: Path, limit_bytes: int) -> Iterator[Path]:
    """A group that may hold so much, none of it in swap. Its processes must have ended when it is left."""
    with _made(folder) as group:
        limit, swap = _files_of(group)
        limit.write_text(str(limit_bytes))
        if swap.exists():
            swap.write_text("0" if limit.name == "memory.max" else str(limit_bytes))
        yield group


def started_in(group: Path, command: Sequence[str]) -> tuple[str, ...]:
    """The command, which joins the group before it becomes itself: all that it ever holds is counted there."""
    return ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *command)


@contextmanager
def _made(folder: Path) -> Iterator[Path]:
    group = folder / f"fairlap-{secrets.token_hex(8)}"
    os.mkdir(group)  # noqa: PTH102  (it must not be there, nor its parents be made)
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """The kernel takes a moment to let go of those that have ended."""
    deadline_s = time.monotonic() + _GONE_WITHIN_S
    while True:
        try:
            os.rmdir(group)  # noqa: PTH106  (the files in it are the kernel's, and go with it)
        except OSError:
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.02)
        else:
            return


def _files_of(group: Path) -> tuple[Path, Path]:
    """Of the limit, and of that of swap."""
    limit = next((name for name in _LIMITS if (group / name).exists()), next(iter(_LIMITS)))
    return group / limit, group / _LIMITS[limit]


def _why_unlimited(group: Path) -> str:
    limit, swap = _files_of(group)
    if not limit.exists():
        return f"groups in {group.parent} have no limit of memory; the controller is not handed down to them"
    if not swap.exists() and _has_swap():
        return f"groups in {group.parent} cannot be kept out of swap"
    return ""


def _has_swap() -> bool:
    try:
        return len(Path("/proc/swaps").read_text().splitlines()) > 1
    except OSError:
        return False
