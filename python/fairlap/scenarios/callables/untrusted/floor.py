"""What a call costs that does nothing but answer, with its share of the ring, and whether figures are without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_FAR_ABOVE = 2.0  # times the floor
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
        """Whether a call takes less than twice as long, so that most of its time may be the floor's."""
        return bool(np.median(block_ns) <= _FAR_ABOVE * self.ns)
