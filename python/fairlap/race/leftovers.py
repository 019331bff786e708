"""Processes that a worker started and that outlived it, found by the mark in their environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path


def marked(mark: str) -> Iterator[int]:
    """Processes that carry the mark. On a system without /proc none are found."""
    needle = mark.encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if needle in path.read_bytes():
                yield int(path.parent.name)
        except OSError:  # it has ended, or is somebody else's
            continue


def end_all_marked(mark: str) -> None:
    """Until none is left: one that is just being forked may be missed the first time."""
    while left := [pid for pid in marked(mark) if pid != os.getpid()]:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
