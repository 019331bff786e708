"""The smallest limit under which something still runs, found by halving. That more room always helps is not believed:
the smallest limit that worked is tried once more, and one that fails then counts as one that does not work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MOST_TRIES = 40


@dataclass(frozen=True)
class Found:
    """``limit`` ran twice, and nothing that was tried below it ran twice. None says why there is no such limit."""

    limit: int | None
    resolution: int  # a limit smaller by this was not found to work
    tries: int
    why: str = ""


def smallest_limit(runs: Callable[[int], str], first: int, most: int, resolution_share: float) -> Found:
    """``runs`` tries a limit and says why it failed; nothing when it ran. ``first`` is a guess that ought to work; it
    is doubled up to ``most`` until one does."""
    tries = 0

    def works(limit: int) -> str:
        nonlocal tries
        tries += 1
        return runs(limit)

    low, high = 0, min(first, most)
    while why := works(high):
        if high >= most or tries >= MOST_TRIES:
            return Found(None, 0, tries, f"it did not run under the largest limit that was tried: {why}")
        low, high = high, min(2 * high, most)
    resolution = max(1, round(resolution_share * high))
    worked = [high]
    while tries < MOST_TRIES:
        while high - low > resolution and tries < MOST_TRIES:
            middle = low + (high - low) // 2
            if works(middle):
                low = middle
            else:
                high = middle
                worked.append(middle)
        if not works(high):
            return Found(high, high - low, tries)
        low = high
        worked = [limit for limit in worked if limit > low]
        if not worked:
            return Found(None, 0, tries, "it ran under its largest limit once, and not the second time")
        high = min(worked)
    return Found(None, 0, tries, f"{tries} tries found no limit under which it ran twice")
