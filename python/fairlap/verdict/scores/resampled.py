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
from fairlap.verdict.scores.student_difference import StudentDifference

FEWEST_ITEMS = 30
"""Of fewer, the standard error and the shape of the difference are not known well enough for a claim."""
_FEWEST_RESAMPLES = 50  # that have a figure


@dataclass(frozen=True)
class Resampled(StudentDifference):
    """The difference of two scores and its standard error over resampled items."""

    method: ClassVar[str] = "paired bootstrap over items"


def standard_error_of(again: Floats, items: int) -> float:
    """Of a figure of so many items, from the same figure ``again`` over resampled ones."""
    error: float = float(again.std(ddof=1)) * (items / (items - 1)) ** 0.5
    return error


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
        found[a, b] = Resampled(values[a] - values[b], standard_error_of(differences, items), items - 1)
    return found
