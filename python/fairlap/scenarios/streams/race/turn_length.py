"""How many requests the servers of a block get in their turns: all as many, so that the slowest is done in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlap.request.fields.streams import StreamLoad
from fairlap.scenarios.streams.streams_found import TurnLength

FEWEST_REQUESTS = 10
"""Of a turn at a rate, so that a block has a 90th percentile; each user asks twice at least."""

_GROWS_BELOW = 0.5  # of the time that was asked for


@dataclass
class TurnRequests:
    """Starts from what an answer takes alone, and follows the longest turn of each block from then on."""

    load: StreamLoad
    trial_s: float
    slowest_alone_s: float
    now: int = field(init=False)  # sessions of each turn: requests, or conversations
    _usual: int = field(init=False)

    def __post_init__(self) -> None:
        load = self.load
        if load.concurrency is not None:
            each_s = (self.slowest_alone_s + load.think_s) * load.requests_in_a_session
            wanted = load.concurrency * self.trial_s / each_s
        else:
            wanted = (load.rate_per_s or 0.0) * self.trial_s
        self.now = self._usual = max(math.ceil(wanted), self.fewest)

    @property
    def fewest(self) -> int:
        return FEWEST_REQUESTS if self.load.concurrency is None else 2 * self.load.concurrency

    def length_of(self, took_s: float) -> TurnLength:
        return TurnLength(self.trial_s, took_s, self.now, self.fewest)

    def follow(self, turns: Sequence[TurnLength]) -> None:
        """Choose the next block's by how long the slowest of this one took."""
        longest = max(turns, key=lambda each: each.took_s, default=None)
        if longest is None:
            return
        if longest.is_much_longer:
            self.now = max(math.floor(self.now * self.trial_s / longest.took_s), self.fewest)
        elif longest.took_s < _GROWS_BELOW * self.trial_s:
            self.now = min(2 * self.now, self._usual)
