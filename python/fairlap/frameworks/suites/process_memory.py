"""The peak of this process's resident memory, since it executed its program."""

from __future__ import annotations

import sys


def peak_bytes() -> int:
    """By the kernel. What ``getrusage`` counts includes the peak of the parent that started this process, on Linux."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:  # noqa: PTH123  (imports less)
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
