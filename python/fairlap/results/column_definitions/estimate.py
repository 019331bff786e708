"""A figure of the row with its interval."""

from __future__ import annotations

import math

import msgspec

from fairlap import verdict
from fairlap.scenarios.contract import Unit, as_time_ns


class Estimate(msgspec.Struct, frozen=True):
    """A figure with its 95 % interval, which takes at least six processes; fewer have the figure alone."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def bounded(cls, value: float, low: float, high: float) -> Estimate:
        """Few processes leave everything possible; from zero to infinity is no interval."""
        return cls(value, low, high) if low > 0 and math.isfinite(high) else cls(value)

    @classmethod
    def of(cls, figure: verdict.ContestantFigure) -> Estimate | None:
        """None where it has several modes."""
        if figure.value is None or figure.low is None or figure.high is None:
            return None
        return cls.bounded(figure.value, figure.low, figure.high)


def time_ns(found: Estimate, unit: Unit) -> Estimate:
    """As figures are compared: of a rate the time of one."""
    ends = [None if end is None else as_time_ns(end, unit) for end in (found.low, found.high)]
    low, high = reversed(ends) if unit == "1/s" else ends
    return Estimate(as_time_ns(found.value, unit), low, high)
