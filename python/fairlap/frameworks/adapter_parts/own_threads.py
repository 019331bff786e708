"""Count the threads of this process, for frameworks that do not report their number."""

from __future__ import annotations

from pathlib import Path

_THREADS = Path("/proc/self/task")


def threads_named(prefix: str) -> int:
    """How many threads have names with this prefix; 0 where the system does not list threads."""
    return sum(name.startswith(prefix) for name in _names())


def thread_count() -> int:
    """0 where the system does not list threads."""
    return len(_names())


def _names() -> list[str]:
    names = []
    for file in _THREADS.glob("*/comm"):
        try:
            names.append(file.read_text())
        except OSError:  # the thread has ended
            continue
    return names
