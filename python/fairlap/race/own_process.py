"""What a worker arranges for itself before anything else runs: its cores, its memory, and that it never outlives us."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_SHOWN = {"VmHWM": "peak_resident", "RssAnon": "anonymous", "RssFile": "file_backed", "RssShmem": "shared"}


def die_with_the_parent(parent_pid: int) -> None:
    """Linux sends SIGKILL when the parent dies; if it died before this was asked for, end here."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def take_cores(cores: str, memory_bytes: str) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes), int(memory_bytes)))


def memory_in_use(contestant: Any) -> dict[str, int]:
    """Peak and present memory as the kernel counts it, and what the framework's allocator says."""
    found: dict[str, int] = {}
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            key, _, value = line.partition(":")
            if key in _SHOWN:
                found[_SHOWN[key]] = int(value.split()[0]) * 1024
    if contestant is not None and contestant.memory_bytes is not None:
        found.update({f"allocator_{key}": int(value) for key, value in contestant.memory_bytes().items()})
    return found
