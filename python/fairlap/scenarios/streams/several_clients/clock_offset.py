"""By how much the clocks of two machines differ, from messages that each stamped when they left and came.

A message takes no less than no time, in either direction. So each exchange bounds the offset on both sides, as NTP's
does (RFC 5905), and all of them together bound it more closely than any one. Nothing is assumed of how alike the two
ways are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

EXCHANGES = 20


@dataclass(frozen=True)
class Exchange:
    """``sent_ns`` and ``back_ns`` are on the clock here, ``came_ns`` and ``left_ns`` on the other one."""

    sent_ns: int
    came_ns: int
    left_ns: int
    back_ns: int


class ClockOffset(msgspec.Struct, frozen=True):
    """The other clock less the one here, and how far that may be off in either direction."""

    offset_ns: float
    uncertainty_ns: float

    @classmethod
    def between(cls, least_ns: float, most_ns: float) -> ClockOffset:
        """Where the bounds have crossed, since one clock went faster meanwhile, both are within the uncertainty."""
        return cls((least_ns + most_ns) / 2, abs(most_ns - least_ns) / 2)

    def including(self, later: ClockOffset) -> ClockOffset:
        """Cover the whole time between two comparisons, in which the offset goes from one to the other."""
        both = (self, later)
        return ClockOffset.between(
            min(each.offset_ns - each.uncertainty_ns for each in both),
            max(each.offset_ns + each.uncertainty_ns for each in both),
        )

    def here_ns(self, there_ns: float) -> float:
        """Return what the clock here shows when the other one shows this."""
        return there_ns - self.offset_ns

    def there_ns(self, here_ns: float) -> float:
        return here_ns + self.offset_ns


def clock_offset(exchanges: Iterable[Exchange]) -> ClockOffset:
    found: Sequence[Exchange] = list(exchanges)
    least_ns = max(each.left_ns - each.back_ns for each in found)
    most_ns = min(each.came_ns - each.sent_ns for each in found)
    return ClockOffset.between(least_ns, most_ns)


def compared(ask: Callable[[], tuple[int, int]], now_ns: Callable[[], int], exchanges: int = EXCHANGES) -> ClockOffset:
    """``ask`` returns when its question came to the other machine, and when the answer left, on the clock there."""
    found = []
    for _ in range(exchanges):
        sent_ns = now_ns()
        came_ns, left_ns = ask()
        found.append(Exchange(sent_ns, came_ns, left_ns, now_ns()))
    return clock_offset(found)
