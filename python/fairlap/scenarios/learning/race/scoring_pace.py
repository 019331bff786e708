"""How often weights are scored: after every epoch, or so seldom that scoring takes no longer than training.

The number of epochs is decided once for a work, from all contestants together, so that it favours none of them.
"""

from __future__ import annotations

import math
from collections import defaultdict

MOST_KEPT = 32  # states that wait to be scored: training goes on for as many epochs after the first that passed
MOST_KEPT_BYTES = 2**27  # of them, for each contestant
_SCORED_FIRST = 2  # epochs; in the first one frameworks compile, and the reference is built


class ScoringPace:
    """Of one work. An epoch counts with what it needs around its steps, as its wall time."""

    def __init__(self) -> None:
        self._decided = 0
        self._trained_s: list[float] = []
        self._scored_s: list[float] = []
        self._state_bytes = 1

    def note(self, epoch: int, trained_s: float, scored_s: float, state_bytes: int) -> None:
        """Take an epoch, which counts from 1 and was trained and scored in so many seconds, into account."""
        if epoch >= _SCORED_FIRST:
            self._trained_s.append(trained_s)
            self._scored_s.append(scored_s)
            self._state_bytes = max(self._state_bytes, state_bytes)

    def every(self, epoch: int) -> int:
        """Return after how many epochs without a score this one is scored. What is decided stays."""
        if epoch > _SCORED_FIRST and self._trained_s and not self._decided:
            wanted = math.ceil(sum(self._scored_s) / max(sum(self._trained_s), 1e-9))
            self._decided = max(1, min(wanted, MOST_KEPT, MOST_KEPT_BYTES // self._state_bytes))
        return self._decided if epoch > _SCORED_FIRST and self._decided else 1


class ScoringPaces:
    """Of the works of a race."""

    def __init__(self) -> None:
        self._of_works: dict[str, ScoringPace] = defaultdict(ScoringPace)

    def of(self, work_id: str) -> ScoringPace:
        return self._of_works[work_id]
