"""What the referee and one contestant exchange through memory of the host.

The arguments are in memory that the contestant cannot write, and only while it may work on them. Its answers are looked
at and copied when it rings back, and compared with that copy when it is stopped.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.scenarios.callables.untrusted.draws import DrawnSlots
from fairlap.scenarios.callables.untrusted.exclusion import Excluded
from fairlap.scenarios.callables.untrusted.layout import Layout
from fairlap.scenarios.callables.untrusted.memory import PAGE_BYTES, SharedMemory

_LOOKS = 64  # at answers before all are copied, which takes longer
_WORD_BYTES = 8
Words = np.ndarray[Any, np.dtype[np.uint64]]


class HostExchange:
    """The answers follow the first page of ``answered``, which has the contestant's state.

    ``copied`` has room for the answers of a sample. All contestants share it, since one runs at a time.
    """

    def __init__(self, answered: SharedMemory, layout: Layout, drawn: DrawnSlots, copied: Words) -> None:
        self._layout = layout
        self._drawn = drawn
        self._answers = answered.bytes[PAGE_BYTES:]
        self._copied = copied
        self._words_of_slot = layout.slot_bytes // _WORD_BYTES
        whole = [(leaf.offset // _WORD_BYTES, leaf.nbytes // _WORD_BYTES) for leaf in layout.leaves]
        self._whole = np.array([each for each in whole if each[1]], np.intp).reshape(-1, 2)
        self._rng = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def prepare(self, first: int, count: int) -> None:
        """Show it the arguments, and fill a word of each answer, at a drawn place, with what it cannot know."""
        self._drawn.show(first, count)
        words = self._answers.view(np.uint64)
        self._sample = words[first * self._words_of_slot : (first + count) * self._words_of_slot]
        self._filled = self._places(np.arange(count)) if len(self._whole) else np.zeros(0, np.intp)
        self._filling = self._rng.integers(0, 2**64, self._filled.size, dtype=np.uint64)
        self._sample[self._filled] = self._filling
        looks = _LOOKS if len(self._whole) else 0
        self._looked_at = self._places(self._rng.integers(0, count, looks))
        self._copied_from = int(self._rng.integers(0, self._sample.size))

    def reveal(self, first: int, count: int) -> None:
        """Do nothing: it cannot see its arguments while it is stopped."""

    def ended_ns(self, first: int, count: int) -> int:
        """Return the time, look at the answers, and copy them all, beginning at a place that was drawn."""
        ended_ns = time.perf_counter_ns()
        self._seen = self._sample[self._looked_at]
        for copied, answered in self._halves():
            copied[...] = answered
        return ended_ns

    def require_in_time(self, first: int, count: int) -> None:
        """Exclude it where answers were missing when it rang back, or changed since. It is stopped."""
        pairs = ((self._seen, self._sample[self._looked_at]), *self._halves())
        changed = sum(int(np.count_nonzero(before != after)) for before, after in pairs)
        if late := changed + int(np.count_nonzero(self._sample[self._filled] == self._filling)):
            what = f"{quantity_text.count(late, 'part')} of its answers came after it rang back, or never"
            raise Excluded(what, code="E_DEFERRED_WORK")

    def require_quiet(self) -> None:
        """Do nothing: its threads are stopped with it."""

    def answers(self, slot: int) -> list[np.ndarray[Any, Any]]:
        """Copy the answers of a slot, of a process that is stopped."""
        return [view.copy() for view in self._layout.views(self._answers, slot)]

    def close(self) -> None:
        """Do nothing: the process closes its memory."""

    def _places(self, slots: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Draw a word of some array of the answer in each slot; of no array that is smaller than a word."""
        offsets, lengths = self._whole[self._rng.integers(0, len(self._whole), slots.size)].T
        places: np.ndarray[Any, Any] = slots * self._words_of_slot + offsets + self._rng.integers(0, lengths)
        return places

    def _halves(self) -> tuple[tuple[Words, Words], tuple[Words, Words]]:
        """Pair the copy with the answers, from the drawn place to the end and then what is before it."""
        place, after = self._copied_from, self._sample.size - self._copied_from
        return (
            (self._copied[:after], self._sample[place:]),
            (self._copied[after : self._sample.size], self._sample[:place]),
        )
