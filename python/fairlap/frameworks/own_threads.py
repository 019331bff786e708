"""The threads of this process, for frameworks that cannot say how many they run on."""

from __future__ import annotations

from pathlib import Path

_THREADS = Path("/proc/self/task")


def threads_named(start: str) -> int:
    """How many threads have a name with this start; 0 where the system does not tell."""
    return sum(name.startswith(start) for name in _names())


def thread_count() -> int:
    """0 where the system does not tell."""
    return len(_names())


def _names() -> list[str]:
    names = []
    for file in _THREADS.glob("*/comm"):
        try:
            names.append(file.read_text())
        except OSError:  # a thread that ended meanwhile
            continue
    return names
