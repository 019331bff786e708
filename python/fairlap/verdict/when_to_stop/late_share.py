"""Whether the share of late requests meets a bound, decided as soon as the requests seen so far allow it.

Wald's sequential probability ratio test (1945) between two shares of which the bound lies in the middle by their odds:
half the odds of the bound and twice the odds. It takes late requests as independent, but those of a queue come in
bursts, so the evidence that it asks for is larger by ``clustering``: about how many late requests there are in a burst.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fairlap.verdict.blocks import require_between

Decided = Literal["met", "missed"]

ODDS_FACTOR = 2.0
ERROR = 0.05  # of each kind, at the two shares
CLUSTERING = 3.0  # with less, searches in a simulated M/D/1 queue found rates that were 8 % too large
_NEVER = -1


@dataclass(frozen=True)
class LateShareTest:
    """``share`` of the requests may be late."""

    share: float
    odds_factor: float = ODDS_FACTOR
    error: float = ERROR
    clustering: float = CLUSTERING

    def __post_init__(self) -> None:
        require_between("share", self.share, 0.0, 1.0)
        require_between("error", self.error, 0.0, 0.5)

    @property
    def fewest(self) -> int:
        """No bound is called missed before so many requests: one of them may be late."""
        return math.ceil(round(1 / self.share, 9))

    def limits(self, requests: int, fewest: int = 0) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """Compute the limits by the number of completed requests, from 0 on.

        So many late ones or more miss the bound, and so many or fewer meet it; -1 where nothing can meet it yet.
        Nothing is decided before so many as ``fewest``, which is for queues that take time to fill and machines that
        stall for a moment.
        """
        counts = np.arange(requests + 1)
        per_late, per_other = self._weights()
        evidence = self.clustering * math.log((1 - self.error) / self.error)
        missed = np.ceil((evidence - counts * per_other) / (per_late - per_other) - 1e-9)
        met = np.floor((-evidence - counts * per_other) / (per_late - per_other) + 1e-9)
        missed = np.where(counts < max(self.fewest, fewest), counts + 1, np.maximum(missed, 1))
        met = np.where(counts < fewest, _NEVER, np.maximum(met, _NEVER))
        return missed.astype(np.uint32), met.astype(np.int32)

    def outcome(self, late: int, requests: int) -> Decided:
        """Of a trial that is over: what was decided, or else what its share of late requests says."""
        return "met" if late <= self.share * requests else "missed"

    def is_missed(self, late: int, requests: int) -> bool:
        """Whether the test itself has decided so."""
        return bool(late >= self.limits(requests)[0][-1])

    def _weights(self) -> tuple[float, float]:
        """Weigh what a late request, and another one, add to the logarithm of the likelihood ratio."""
        odds = self.share / (1 - self.share)
        low, high = (each / (1 + each) for each in (odds / self.odds_factor, odds * self.odds_factor))
        return math.log(high / low), math.log((1 - high) / (1 - low))
