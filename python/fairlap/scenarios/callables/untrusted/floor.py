"""What a call costs that does nothing but answer, with its share of the ring, and whether figures are without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice

_FAR_ABOVE = 2.0  # times the floor
_NEAR = 10.0  # times the floor: the empty call reads no arguments, so a real one may have as much again on top
NEAR_THE_FLOOR = "W_NEAR_THE_FLOOR"

Times = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Floor:
    """``ns`` is its median over the blocks: in a single block the machine may have disturbed the empty call alone."""

    ns: float
    is_subtracted: bool

    @classmethod
    def of(cls, empty_ns: Sequence[float], others_ns: Sequence[Sequence[float]]) -> Floor:
        """Subtract it only where every callable takes far longer; otherwise no time is without it.

        A call that was disturbed in a few blocks is not near the floor for that, so medians decide; a block that is
        below the floor would have no time left.
        """
        ns = float(np.median(empty_ns))
        far = all(np.median(each) > _FAR_ABOVE * ns and min(each) > ns for each in others_ns)
        return cls(ns, bool(others_ns) and far)

    def figures(self, block_ns: Sequence[float]) -> Times:
        times: Times = np.array(block_ns, dtype=np.float64)
        return times - self.ns if self.is_subtracted else times

    def is_near(self, block_ns: Sequence[float]) -> bool:
        """Whether the floor is so much of its time that what it leaves out counts."""
        return bool(np.median(block_ns) < _NEAR * self.ns)

    def notice(self, block_ns: Sequence[float]) -> Notice:
        if np.median(block_ns) <= self.ns:
            return Notice(NEAR_THE_FLOOR, "a call that only answers takes as long: its own time is unknown")
        share = quantity_text.share(self.ns / float(np.median(block_ns)), 2)
        is_in = "was subtracted" if self.is_subtracted else "is in it"
        return Notice(NEAR_THE_FLOOR, f"the floor is {share} of its time and {is_in}: the time may be off by as much")
