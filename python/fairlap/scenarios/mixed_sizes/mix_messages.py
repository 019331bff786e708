"""What a process showed of a mix of sizes.

Whatever reads process results imports this module, so it must stay light.
"""

from __future__ import annotations

import msgspec


class CallsOfSize(msgspec.Struct, frozen=True):
    """What one process showed at one size."""

    label: str
    calls: int  # of the file
    p50_ns: float | None = None
    samples: int = 0
    first_s: float | None = None  # None where the contestant was prepared for this size
    compiled: int | None = None

    @property
    def stall_s(self) -> float | None:
        """How much longer its first call took than a later one."""
        if self.first_s is None or self.p50_ns is None:
            return None
        return max(self.first_s - self.p50_ns / 1e9, 0.0)


class MixFound(msgspec.Struct, frozen=True):
    """Of one process."""

    sizes: tuple[CallsOfSize, ...]
    graphs: int | None = None  # that were compiled for all sizes; None where nothing counts them

    @property
    def call_ns(self) -> float | None:
        """The time of a call over the mix: the median of each size, weighted by its calls. None without all of them."""
        total = sum(each.calls for each in self.sizes)
        known = [each.calls * each.p50_ns for each in self.sizes if each.p50_ns is not None]
        return sum(known) / total if len(known) == len(self.sizes) else None

    @property
    def stalls_s(self) -> float | None:
        """Of all first calls but that of the size that it was prepared for; None before all sizes were measured."""
        stalls = [each.stall_s for each in self.sizes if each.first_s is not None]
        known = [stall for stall in stalls if stall is not None]
        return sum(known) if len(known) == len(stalls) and self.call_ns is not None else None

    @property
    def stall_share(self) -> float | None:
        """Of the time of these first calls."""
        first_s = sum(each.first_s for each in self.sizes if each.first_s is not None)
        return None if self.stalls_s is None or not first_s else self.stalls_s / first_s
