"""The energy of a stretch of time, or why it is unknown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Energy:
    """Joules of a region with their interval. None is unknown, for the reason given; never 0.

    Without joules there may still be an interval: the bounds that the readings around the region give.
    """

    joules: float | None
    low_j: float | None
    high_j: float | None
    unresolved_because: str
    readings: int  # inside the region
