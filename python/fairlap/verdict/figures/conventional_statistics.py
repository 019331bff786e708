"""Mean, standard deviation and Welch's t test, in addition to the verdict, for readers who expect them.

They are never the verdict: on runs that are not interleaved, under a 2 % drift, Welch's test calls identical
code different in 74 % of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fairlap.verdict.blocks import BlockTable

_Errors = TypeVar("_Errors", float, npt.NDArray[np.float64])


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
        counts = (table.blocks, table.blocks)
        freedom = _degrees_of_freedom(squared_errors[first], squared_errors[second], counts)
        p = 2 * stdtr(freedom, -np.abs(t))
    return tuple(
        Welch(table.contestants[i], table.contestants[j], float(t[k]), float(freedom[k]), float(p[k]))
        for k, (i, j) in enumerate(zip(first, second, strict=True))
    )


def mean_difference(
    before: Sequence[float], after: Sequence[float], *, alpha: float = 0.05
) -> tuple[float, float | None, float | None]:
    """Subtract the first mean from the second, with Welch's interval; without one where either has one value."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    difference = float(np.mean(after) - np.mean(before))
    if min(len(before), len(after)) < 2:
        return difference, None, None
    first, second = (float(np.var(values, ddof=1)) / len(values) for values in (before, after))
    both = first + second
    if both == 0:
        return difference, difference, difference
    freedom = _degrees_of_freedom(first, second, (len(before), len(after)))
    half = float(stdtrit(freedom, 1 - alpha / 2)) * both**0.5
    return difference, difference - half, difference + half


def _degrees_of_freedom(first: _Errors, second: _Errors, counts: tuple[int, int]) -> _Errors:
    """By Welch and Satterthwaite, of the squared standard errors of two means of so many values each."""
    return (first + second) ** 2 / (first**2 / (counts[0] - 1) + second**2 / (counts[1] - 1))
