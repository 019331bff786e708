"""Processes as the system shows them, and the wait until something is there, or not any more."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


def content(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def wait_until(
    look: Callable[[], Found], within_s: float = 120.0, *, running: subprocess.Popen[Any] | None = None
) -> Found:
    """Look until there is something, and return it; a process that is to bring it about must be ``running``."""
    ends_s = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < ends_s
        assert running is None or running.poll() is None, "it ended before"
        time.sleep(0.05)
    return found


def wait_until_empty(look: Callable[[], object], within_s: float = 120.0) -> None:
    ends_s = time.monotonic() + within_s
    while left := look():
        assert time.monotonic() < ends_s, left
        time.sleep(0.05)
