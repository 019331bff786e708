"""What a call costs by its size: time = a + b n, or a + b n^p where the exponent is shown to differ from 1.

An interval rests on two sources: the blocks, which are drawn again, all sizes of a block together, and what they leave
unexplained of the scatter of the sizes about the law. How large that scatter is is itself known from few sizes only;
each draw takes it from the distribution that the sizes allow, scaled inverse chi-squared, which gives Student's
intervals for a law that is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairlap import quantity_text
from fairlap.verdict.blocks import BadInput, Floats
from fairlap.verdict.scaling.bounded_fit import Bounded, nonnegative_fit

Law = Literal["linear", "power"]

FEWEST_BLOCKS = 6
FEWEST_SIZES = {"linear": 4, "power": 5}  # two more than there are coefficients
LARGEST_MISS = 0.25  # of a median, relative to the law; less is what a busy machine does, and widens the intervals
WIDEST_EXPONENT = 0.5  # of its interval: beyond it, the sizes do not tell the laws apart
_LEAST_EXPONENT, _LARGEST_EXPONENT = 0.1, 4.0
_DRAWS = 1000
_SEED = 20_211_104
_TAIL = 0.025
_FARTHEST = 5.0  # as a log ratio; few sizes allow any scatter in a few draws
_GRID = 24
_GOLDEN = (5**0.5 - 1) / 2
_NARROWINGS = 16  # by the golden ratio: what is left is finer than any interval


class NoCost(BadInput):
    """No law fits, or there is too little to fit one to."""


@dataclass(frozen=True)
class CostBySize:
    """``slope_ns`` is of n, or of n to the exponent, which a linear law lacks."""

    law: Law
    overhead_ns: Bounded
    slope_ns: Bounded
    exponent: Bounded | None
    largest_miss: float
    sizes: int

    def time_ns(self, size: float) -> float:
        power = 1.0 if self.exponent is None else self.exponent.value
        return float(self.overhead_ns.value + self.slope_ns.value * size**power)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Of the medians, which come first, and of every draw; sizes are shares of the largest."""

    coefficients: Floats  # shaped (draws, 2)
    exponents: Floats
    log_misses: Floats  # of the medians by size: how far they are above the law

    @property
    def largest_miss(self) -> float:
        return float(np.expm1(np.abs(self.log_misses).max()))


def cost_by_size(times_ns: Floats, sizes: Sequence[float] | Floats) -> CostBySize:
    """``times_ns`` is shaped (blocks, sizes). Raises where no law describes them."""
    n = np.asarray(sizes, dtype=np.float64)
    fewest = FEWEST_SIZES["linear"]
    if n.size < fewest:
        raise NoCost(f"the cost by size takes {fewest} sizes (got {n.size})")
    if (blocks := times_ns.shape[0]) < FEWEST_BLOCKS:
        raise NoCost(f"the cost by size takes {FEWEST_BLOCKS} blocks (got {blocks})")
    shares, largest = n / n.max(), float(n.max())
    rng = np.random.default_rng(_SEED)
    medians = _drawn_medians(times_ns, rng)
    linear = _fit(shares, medians[:1], np.ones(1))
    fits_linearly = linear.largest_miss <= LARGEST_MISS
    if n.size < FEWEST_SIZES["power"]:
        if fits_linearly:
            return _cost("linear", _linear(shares, medians, linear, rng), None, largest)
        raise NoCost(
            f"{_miss_text(linear, sizes)} of a linear law, and a power law takes {FEWEST_SIZES['power']} sizes"
        )
    power = _fit(shares, medians[:1], _best_exponents(shares, medians[:1]))
    if power.largest_miss > LARGEST_MISS:
        raise NoCost(f"{_miss_text(power, sizes)} of the nearest law")
    power = _power(shares, medians, power, rng)
    exponent = _bounded(power.exponents)
    if fits_linearly and exponent.low <= 1 <= exponent.high:
        return _cost("linear", _linear(shares, medians, linear, rng), None, largest)
    if exponent.high - exponent.low > WIDEST_EXPONENT:
        between = f"{quantity_text.number(exponent.low)} and {quantity_text.number(exponent.high)}"
        raise NoCost(f"the exponent is only known to be between {between}")
    return _cost("power", power, exponent, largest)


def _drawn_medians(times_ns: Floats, rng: np.random.Generator) -> Floats:
    """Return the medians of all blocks, then those of resamples."""
    blocks = times_ns.shape[0]
    drawn = np.median(times_ns[rng.integers(blocks, size=(_DRAWS, blocks))], axis=1)
    medians: Floats = np.concatenate([[np.median(times_ns, axis=0)], drawn])
    return medians


def _linear(shares: Floats, medians: Floats, first: _Fit, rng: np.random.Generator) -> _Fit:
    moved = _with_scatter(first, medians, 2, rng)
    return _fit(shares, moved, np.ones(len(moved)))


def _power(shares: Floats, medians: Floats, first: _Fit, rng: np.random.Generator) -> _Fit:
    moved = _with_scatter(first, medians, 3, rng)
    return _fit(shares, moved, _best_exponents(shares, moved))


def _with_scatter(first: _Fit, medians: Floats, coefficients: int, rng: np.random.Generator) -> Floats:
    """Move the medians of each draw by the scatter about the law that its blocks do not explain."""
    freedom = first.log_misses.size - coefficients
    of_sizes = float((first.log_misses**2).sum()) / rng.chisquare(freedom, size=len(medians) - 1)
    logs = np.log(medians[1:])
    of_blocks = float((logs - logs.mean(axis=1, keepdims=True)).var(axis=0).mean())  # what hits all sizes bends no law
    spread = np.sqrt(np.maximum(of_sizes - of_blocks, 0.0))
    moves = spread[:, None] * rng.standard_normal(medians[1:].shape)
    return np.concatenate([medians[:1], medians[1:] * np.exp(np.clip(moves, -_FARTHEST, _FARTHEST))])


def _fit(shares: Floats, times: Floats, exponents: Floats) -> _Fit:
    coefficients = nonnegative_fit(_relative_terms(shares, times, exponents), np.ones_like(times))
    fitted = coefficients[0, 0] + coefficients[0, 1] * shares ** exponents[0]
    return _Fit(coefficients, exponents, np.log(times[0] / fitted))


def _relative_terms(shares: Floats, times: Floats, exponents: Floats) -> Floats:
    """Over the times, since noise is relative."""
    powers = shares[None, :] ** exponents[:, None]
    terms: Floats = np.stack([np.ones_like(powers), powers], axis=2) / times[:, :, None]
    return terms


def _squares(shares: Floats, times: Floats, exponents: Floats) -> Floats:
    terms = _relative_terms(shares, times, exponents)
    left = np.einsum("sec,sc->se", terms, nonnegative_fit(terms, np.ones_like(times))) - 1
    total: Floats = (left**2).sum(axis=1)
    return total


def _best_exponents(shares: Floats, times: Floats) -> Floats:
    """Search a grid for all draws at once, then narrow the two steps around its best point by golden section.

    SciPy has such a search for one function, and a thousand of them would take seconds.
    """
    grid = np.geomspace(_LEAST_EXPONENT, _LARGEST_EXPONENT, _GRID)
    found = np.stack([_squares(shares, times, np.full(len(times), each)) for each in grid])
    best = found.argmin(axis=0)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, _GRID - 1)]
    for _ in range(_NARROWINGS):
        step = _GOLDEN * (high - low)
        left_is_better = _squares(shares, times, high - step) < _squares(shares, times, low + step)
        low, high = np.where(left_is_better, low, high - step), np.where(left_is_better, low + step, high)
    middle: Floats = (low + high) / 2
    return middle


def _cost(law: Law, fit: _Fit, exponent: Bounded | None, largest_size: float) -> CostBySize:
    slopes = fit.coefficients[:, 1] / largest_size**fit.exponents
    overhead, slope = _bounded(fit.coefficients[:, 0]), _bounded(slopes)
    return CostBySize(law, overhead, slope, exponent, fit.largest_miss, fit.log_misses.size)


def _bounded(draws: Floats) -> Bounded:
    value = float(draws[0])
    low, high = (float(each) for each in np.quantile(draws[1:], [_TAIL, 1 - _TAIL]))
    return Bounded(value, min(low, value), max(high, value))


def _miss_text(fit: _Fit, sizes: Sequence[float] | Floats) -> str:
    worst = int(np.abs(fit.log_misses).argmax())
    times = quantity_text.times(float(np.exp(fit.log_misses[worst])))
    return f"the time at {sizes[worst]:,g} is {times} that"
