"""What a node of the cluster is called for.

It runs in a process of the cluster, which has set variables for itself: blocks and facts are those of the environment
that the node was started in.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from fairlap.sweep.block_process import report_of
from fairlap.sweep.machine_here import machine_here

_NOT_FOR_BLOCKS = ("FAIRLAP_STORE", "RAY_")  # the store's address may hold a password


def describe() -> bytes:
    _take_priority_of_node()
    return msgspec.msgpack.encode(machine_here(_environment()))


def run(task: bytes) -> bytes:
    """Run the task; raise BlockLost."""
    _take_priority_of_node()
    return report_of(task, _environment())


def _take_priority_of_node() -> None:
    """Ray lowers that of its tasks. Where it may not be raised again, the driver reports it."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, os.getppid()))


def _environment() -> dict[str, str]:
    """Read the parent process's environment: Ray sets OMP_NUM_THREADS and CUDA_VISIBLE_DEVICES for its tasks."""
    try:
        raw = Path(f"/proc/{os.getppid()}/environ").read_bytes()
        pairs = (os.fsdecode(each).partition("=") for each in raw.split(b"\0") if b"=" in each)
        found = {name: value for name, _, value in pairs}
    except OSError:
        found = dict(os.environ)
    return {name: value for name, value in found.items() if not name.startswith(_NOT_FOR_BLOCKS)}
