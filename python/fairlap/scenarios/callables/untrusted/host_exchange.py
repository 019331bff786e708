"""What the referee and one contestant exchange through memory of the host.

The arguments are in memory that the contestant cannot write. Its answers are looked at when it rings back and again
when it is stopped, at places that are drawn in secret.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from fairlap.scenarios.callables.untrusted.layout import Layout
from fairlap.scenarios.callables.untrusted.memory import PAGE_BYTES, SharedMemory
from fairlap.scenarios.callables.untrusted.result import Excluded

_LOOKS = 64  # at the answers, right after the ring; 47 % of samples show that a hundredth is late
_WORD_BYTES = 8


class HostExchange:
    """The answers follow the first page of ``answered``, which has the contestant's state."""

    def __init__(self, answered: SharedMemory, layout: Layout) -> None:
        self._layout = layout
        self._answers = answered.bytes[PAGE_BYTES:]
        self._words, self._partial = _words_of(layout)
        self._rng = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def prepare(self, first: int, count: int) -> None:
        """Fill words of the answers at drawn places with what no contestant can know."""
        self._looked_at = self._poison = np.zeros(0, np.uint64)
        if not self._words.size:
            self._looked_at = np.zeros(0, np.intp)
            return
        slots = self._rng.integers(first, first + count, _LOOKS)
        places = self._words[self._rng.integers(0, self._words.size, _LOOKS)]
        self._looked_at = np.unique(slots * (self._layout.slot_bytes // _WORD_BYTES) + places)
        self._rng.shuffle(self._looked_at)
        self._poison = self._rng.integers(0, 2**64, self._looked_at.size, dtype=np.uint64)
        self._answers.view(np.uint64)[self._looked_at] = self._poison

    def reveal(self, first: int, count: int) -> None:
        """Do nothing: it cannot see its arguments while it is stopped."""

    def ended_ns(self, first: int, count: int) -> int:
        """Return the time, and look at the answers."""
        ended_ns = time.perf_counter_ns()
        self._seen = self._answers.view(np.uint64)[self._looked_at]
        return ended_ns

    def require_in_time(self, first: int, count: int) -> None:
        """Exclude it where answers were missing when it rang back, or changed since. It is stopped."""
        changed = int((self._seen != self._answers.view(np.uint64)[self._looked_at]).sum())
        if late := changed or self._untouched():
            looks = self._looked_at.size
            what = f"{late} of {looks} parts of its answers that were looked at were not there when it rang back"
            raise Excluded(what, code="E_DEFERRED_WORK")

    def require_quiet(self) -> None:
        """Do nothing: its threads are stopped with it."""

    def answers(self, slot: int) -> list[np.ndarray[Any, Any]]:
        """Copy the answers of a slot, of a process that is stopped."""
        return [view.copy() for view in self._layout.views(self._answers, slot)]

    def close(self) -> None:
        """Do nothing: the process closes its memory."""

    def _untouched(self) -> int:
        """Count the looks that found what was put there; of a word that is filled in part that can be by chance."""
        whole = ~np.isin(self._looked_at % (self._layout.slot_bytes // _WORD_BYTES), self._partial)
        return int(((self._seen == self._poison) & whole).sum()) if self._seen.size else 0


def _words_of(layout: Layout) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the places in a slot of the words that an answer is in, and of those that it fills in part."""
    whole: list[int] = []
    partial: list[int] = []
    for leaf in layout.leaves:
        first = leaf.offset // _WORD_BYTES
        whole += range(first, first + leaf.nbytes // _WORD_BYTES)
        partial += [first] if 0 < leaf.nbytes < _WORD_BYTES else []
    return np.array([*whole, *partial], np.intp), np.array(partial, np.intp)
