"""A difference of scores by Student's distribution: its p values, intervals and what was detectable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# What tests of scores share: the power at which effects count as detectable, and levels that are found by halving.
Z_OF_POWER = 0.8416212335729143
"""Of 80 %: the normal quantile."""
_HALVINGS = 40


def smallest_level(is_shown: Callable[[float], bool]) -> float:
    """Find the smallest one-sided level at which a claim is shown that is shown at every greater one; 1 if at none."""
    low, high = 0.0, 0.5
    if not is_shown(high - 1e-9):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class StudentDifference:
    difference: float
    standard_error: float
    degrees: float  # of freedom, that the standard error has

    @property
    def p(self) -> float:
        if self.standard_error == 0:
            return float(self.difference == 0)
        return 2 * self._tail(abs(self.difference))

    def interval(self, level: float) -> tuple[float, float]:
        half = self._quantile(level / 2) * self.standard_error
        return self.difference - half, self.difference + half

    def equivalence_interval(self, level: float) -> tuple[float, float]:
        return self.interval(level)

    def p_equivalent(self, margin: float) -> float:
        room = margin - abs(self.difference)
        if self.standard_error == 0:
            return float(room <= 0)
        return self._tail(room)

    def detectable(self, level: float) -> float:
        return (self._quantile(level / 2) + Z_OF_POWER) * self.standard_error

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr  # type: ignore[import-untyped,unused-ignore]

        return float(stdtr(self.degrees, -distance / self.standard_error))

    def _quantile(self, tail: float) -> float:
        from scipy.special import stdtrit

        return float(-stdtrit(self.degrees, tail))
