"""The memory of this very process and its children, as the kernel counts it. What it does not tell is absent."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

_KIB = 1024
_NAMES = {
    "VmHWM": "peak",
    "VmPeak": "address_space_peak",
    "RssAnon": "anonymous",
    "RssFile": "file",
    "RssShmem": "shared",  # pinned memory too
}


def reset_peak(pid: int | str = "self") -> str:
    """The high-water mark starts anew from what is held now. Why it could not be; empty when it was."""
    path = f"/proc/{pid}/clear_refs"
    try:
        with open(path, "w") as file:  # noqa: PTH123  (it must not be made where it is not)
            file.write("5")
    except OSError as error:
        return f"{path} could not be written: {error.strerror}"
    return ""


def memory_of(pid: int | str = "self") -> dict[str, int]:
    found = _kib_lines(f"/proc/{pid}/status", _NAMES)
    if not found and pid == "self":  # not Linux
        found["peak"] = _max_resident(resource.RUSAGE_SELF)
    return found


def proportional() -> dict[str, int]:
    """Pages that several processes share are counted by their share."""
    return _kib_lines("/proc/self/smaps_rollup", {"Pss": "proportional"})


def largest_ended_child_bytes() -> int:
    return _max_resident(resource.RUSAGE_CHILDREN)


def descendants(pid: int | str = "self") -> list[int]:
    """Those that live. None where the kernel does not list them."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *descendants(child)]
    return found


def lists_children() -> bool:
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def _max_resident(who: int) -> int:
    """The kernel counts in KiB, that of macOS in bytes."""
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else _KIB)


def _kib_lines(path: str, names: dict[str, str]) -> dict[str, int]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {names[key]: int(value.split()[0]) * _KIB for key, _, value in pairs if key in names}
