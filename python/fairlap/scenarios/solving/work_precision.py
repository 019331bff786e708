"""What a process showed of a solver: its error, time, steps and evaluations at each tolerance.

Whatever reads process results imports this module, so it must stay light.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import msgspec

_EXACT = 1e-17  # what an error of 0 counts as, which has no logarithm


class AtTolerance(msgspec.Struct, frozen=True):
    """``error`` is None where the solver gave up. Evaluations are None where nothing counts them."""

    tolerance: float
    error: float | None = None
    p50_ns: float | None = None
    samples: int = 0
    steps: float | None = None  # accepted, for an item
    evaluations: float | None = None


class WorkPrecision(msgspec.Struct, frozen=True):
    """The curve of one process. ``error`` is the one at which solvers are compared."""

    error: float
    points: tuple[AtTolerance, ...] = ()  # from the loosest tolerance on

    @property
    def time_ns(self) -> float | None:
        """To the error; None where the curve does not cross it."""
        return self._at_error(lambda point: point.p50_ns)

    @property
    def steps(self) -> float | None:
        return self._at_error(lambda point: point.steps)

    @property
    def evaluations(self) -> float | None:
        return self._at_error(lambda point: point.evaluations)

    @property
    def errors(self) -> list[float]:
        return [point.error for point in self.points if point.error is not None]

    @property
    def given_up(self) -> list[float]:
        """Return the tolerances at which there is no solution."""
        return [point.tolerance for point in self.points if point.error is None]

    def _at_error(self, read: Callable[[AtTolerance], float | None]) -> float | None:
        """Interpolate between the logarithms, where the error first comes down to the one wanted."""
        for looser, tighter in pairwise(point for point in self.points if point.error is not None):
            above, below = looser.error or _EXACT, tighter.error or _EXACT
            if not above > self.error >= below:
                continue
            first, second = read(looser), read(tighter)
            if not first or not second:
                return None
            share = math.log(above / self.error) / math.log(above / below)
            return math.exp((1 - share) * math.log(first) + share * math.log(second))
        return None
