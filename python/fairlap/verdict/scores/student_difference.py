"""A difference of scores by Student's distribution: its p values, intervals and what was detectable."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.verdict.scores.levels import Z_OF_POWER


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
