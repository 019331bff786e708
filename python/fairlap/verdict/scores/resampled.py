"""Two contestants by a figure of many items, such as a mean error: resampled items, the same ones for both.

The bootstrap gives the standard error of the difference, and Student's distribution the interval. Percentiles of the
resamples would need tens of thousands of them at the levels that many pairs leave to each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from fairlap.verdict.blocks import Counts, Floats
from fairlap.verdict.scores.levels import Z_OF_POWER

FEWEST_ITEMS = 30
"""Of fewer, the standard error and the shape of the difference are not known well enough for a claim."""
_FEWEST_RESAMPLES = 50  # that have a figure


@dataclass(frozen=True)
class Resampled:
    """The difference of two scores and its standard error over resampled items."""

    method: ClassVar[str] = "paired bootstrap over items"
    difference: float
    standard_error: float
    items: int

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

        return float(stdtr(self.items - 1, -distance / self.standard_error))

    def _quantile(self, tail: float) -> float:
        from scipy.special import stdtrit

        return float(-stdtrit(self.items - 1, tail))


def resampled_pairs(
    figures: Mapping[str, Callable[[Counts], float]], items: int, resamples: int
) -> dict[tuple[str, str], Resampled]:
    """Compare all pairs; each figure takes places of items. Pairs without a figure in most resamples are left out."""
    drawn = np.random.default_rng(0)
    whole = np.arange(items)
    values = {name: figure(whole) for name, figure in figures.items()}
    again: dict[str, Sequence[float] | Floats] = {name: np.empty(resamples) for name in figures}
    for number in range(resamples):
        places = drawn.integers(0, items, items)
        for name, figure in figures.items():
            again[name][number] = figure(places)  # type: ignore[index]
    found = {}
    for a, b in combinations(figures, 2):
        differences = np.asarray(again[a]) - np.asarray(again[b])
        differences = differences[np.isfinite(differences)]
        if differences.size < max(_FEWEST_RESAMPLES, resamples / 2):
            continue
        error = float(differences.std(ddof=1)) * (items / (items - 1)) ** 0.5
        found[a, b] = Resampled(values[a] - values[b], error, items)
    return found
