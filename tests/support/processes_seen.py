"""Processes as the system shows them, and the wait until something is not there any more."""

from __future__ import annotations

import time
from pathlib import Path


def content(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def wait_until_empty(found: object, within_s: float = 40.0) -> None:
    deadline_s = time.monotonic() + within_s
    while left := found():  # type: ignore[operator]
        assert time.monotonic() < deadline_s, left
        time.sleep(0.2)
