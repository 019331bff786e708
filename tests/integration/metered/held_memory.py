"""Callables that differ by what they hold: nothing, or 300 MiB of memory that was written to."""

from __future__ import annotations

import mmap

_kept: list[mmap.mmap] = []


def little() -> int:
    return sum(range(1000))


def much() -> int:
    if not _kept:
        memory = mmap.mmap(-1, 300 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory[::4096] = b"x" * (len(memory) // 4096)  # every page, and no copy of the whole
        _kept.append(memory)
    return sum(range(1000))
