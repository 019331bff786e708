"""The memory of this very process and its children, as the kernel counts it. What it does not tell is absent."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

_KIB = 1024
_STATUS_NAMES = {
    "VmHWM": "peak",
    "RssAnon": "anonymous",
    "RssFile": "file",
    "RssShmem": "shared",
}


def reset_peak() -> None:
    """The high-water mark starts anew from what is held now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes(pid: int | str = "self") -> int | None:
    return _status(pid).get("peak")


def memory_now() -> dict[str, int]:
    memory = _status("self")
    if not memory:  # not Linux
        memory["peak"] = _max_resident(resource.RUSAGE_SELF)
    memory |= _proportional()
    children = [peak for pid in _descendants(os.getpid()) if (peak := peak_bytes(pid)) is not None]
    memory["children_peak"] = sum(children)
    return memory


def largest_ended_child_bytes() -> int:
    return _max_resident(resource.RUSAGE_CHILDREN)


def _max_resident(who: int) -> int:
    """The kernel counts in KiB, that of macOS in bytes."""
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else _KIB)


def _status(pid: int | str) -> dict[str, int]:
    return _kib_lines(f"/proc/{pid}/status", _STATUS_NAMES)


def _proportional() -> dict[str, int]:
    """Pages that several processes share are counted by their share."""
    return _kib_lines("/proc/self/smaps_rollup", {"Pss": "proportional"})


def _kib_lines(path: str, names: dict[str, str]) -> dict[str, int]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {names[key]: int(value.split()[0]) * _KIB for key, _, value in pairs if key in names}


def _descendants(pid: int) -> list[int]:
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *_descendants(child)]
    return found
