"""Mean, standard deviation and Welch's t test, in addition to the verdict, for readers who expect them.

They are never the verdict: on runs that are not interleaved, under a 2 % drift, Welch's test calls identical
code different in 74 % of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlap.verdict.blocks import BlockTable


@dataclass(frozen=True)
class MeanAndSpread:
    contestant: str
    mean: float
    standard_deviation: float
    runs: int


@dataclass(frozen=True)
class Welch:
    a: str
    b: str
    t: float
    degrees_of_freedom: float
    p: float


def means_and_spreads(table: BlockTable) -> tuple[MeanAndSpread, ...]:
    """Arithmetic mean and standard deviation of the process figures themselves, not of their logarithms."""
    figures = np.exp(table.log_figures)
    return tuple(
        MeanAndSpread(name, float(mean), float(deviation), table.blocks)
        for name, mean, deviation in zip(
            table.contestants, figures.mean(axis=0), figures.std(axis=0, ddof=1), strict=True
        )
    )


def welch(table: BlockTable) -> tuple[Welch, ...]:
    """Welch's unequal-variances t test for every pair, ignoring the blocks and the number of pairs."""
    from scipy.special import stdtr  # type: ignore[import-untyped,unused-ignore]

    figures = np.exp(table.log_figures)
    means, squared_errors = figures.mean(axis=0), figures.var(axis=0, ddof=1) / table.blocks
    first, second = np.triu_indices(len(table.contestants), k=1)
    both = squared_errors[first] + squared_errors[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (means[first] - means[second]) / np.sqrt(both)
        freedom = both**2 * (table.blocks - 1) / (squared_errors[first] ** 2 + squared_errors[second] ** 2)
        p = 2 * stdtr(freedom, -np.abs(t))
    return tuple(
        Welch(table.contestants[i], table.contestants[j], float(t[k]), float(freedom[k]), float(p[k]))
        for k, (i, j) in enumerate(zip(first, second, strict=True))
    )


def mean_difference(
    before: Sequence[float], after: Sequence[float], *, alpha: float = 0.05
) -> tuple[float, float | None, float | None]:
    """The second mean less the first, with Welch's interval; without one where either has a single value."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    difference = float(np.mean(after) - np.mean(before))
    if min(len(before), len(after)) < 2:
        return difference, None, None
    squared_errors = [float(np.var(values, ddof=1)) / len(values) for values in (before, after)]
    both = sum(squared_errors)
    if both == 0:
        return difference, difference, difference
    parts = zip(squared_errors, (len(before), len(after)), strict=True)
    freedom = both**2 / sum(error**2 / (count - 1) for error, count in parts)
    half = float(stdtrit(freedom, 1 - alpha / 2)) * both**0.5
    return difference, difference - half, difference + half
