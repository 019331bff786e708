"""What a process that a cluster made for a node takes over from the node: its priority and its environment.

The cluster has set variables for itself: what is started on a node runs in the environment that the node has.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_NOT_FOR_PROGRAMS = ("FAIRLAP_STORE", "RAY_")  # the store's address may hold a password


def take_priority_of_node() -> None:
    """Ray lowers that of its tasks. Where it may not be raised again, the driver reports it."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, os.getppid()))


def environment_of_node() -> dict[str, str]:
    """Read the parent process's environment: Ray sets OMP_NUM_THREADS and CUDA_VISIBLE_DEVICES for its tasks."""
    try:
        raw = Path(f"/proc/{os.getppid()}/environ").read_bytes()
        pairs = (os.fsdecode(each).partition("=") for each in raw.split(b"\0") if b"=" in each)
        found = {name: value for name, _, value in pairs}
    except OSError:
        found = dict(os.environ)
    return {name: value for name, value in found.items() if not name.startswith(_NOT_FOR_PROGRAMS)}
