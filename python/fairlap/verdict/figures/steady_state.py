"""Did one process settle? Change points in the mean and the variance of its samples.

After Barrett, Bolz-Tereick, Killick, Mount and Tratt (OOPSLA 2017): single outliers are taken out, change
points are those of the cheapest partition under a normal cost and a penalty of 15 ln n, and the last quarter
must be one segment. Segments whose medians are within 1 % count as one level.
A process without a steady state is a finding, and is never trimmed into looking like one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np

from fairlap.verdict.blocks import Floats, OneSample, log_of_positive
from fairlap.verdict.warnings import StatisticalWarning, TooShortToClassify

_FEWEST_SAMPLES = 20
_MOST_POINTS = 200
_OUTLIER_WINDOW = 25
_SAME_LEVEL = 0.01


class Course(Enum):
    """How a process went."""

    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOW_DOWN = "slow-down"
    NO_STEADY_STATE = "no steady state"


@dataclass(frozen=True)
class SteadyState:
    """The course of one process, its change points, and the sample from which it was steady."""

    course: Course
    change_points: tuple[int, ...]
    steady_from: int
    warnings: tuple[StatisticalWarning, ...] = ()


def steady_state(samples: Sequence[float] | Floats, whose: str = "process") -> SteadyState:
    """Classify one process by its samples in the order they were taken."""
    logs = log_of_positive(samples, whose)
    if logs.size < 2:
        raise OneSample(f"{whose}: {logs.size} samples; at least two are needed, better thirty")
    if logs.size < _FEWEST_SAMPLES:
        return SteadyState(Course.FLAT, (), 0, (TooShortToClassify(logs.size, _FEWEST_SAMPLES),))
    points = change_points(np.asarray(samples, dtype=np.float64))
    edges = [0, *points, logs.size]
    levels = [float(np.median(logs[start:end])) for start, end in pairwise(edges)]
    same = [abs(level - levels[-1]) <= _SAME_LEVEL for level in levels]
    first_steady = len(levels) - 1
    while first_steady > 0 and same[first_steady - 1]:
        first_steady -= 1
    start = edges[first_steady]
    if start > 0.75 * logs.size:
        return SteadyState(Course.NO_STEADY_STATE, tuple(points), int(0.75 * logs.size))
    if start == 0:
        return SteadyState(Course.FLAT, tuple(points), 0)
    slower_than_some = any(level < levels[-1] - _SAME_LEVEL for level in levels)
    return SteadyState(Course.SLOW_DOWN if slower_than_some else Course.WARM_UP, tuple(points), start)


def change_points(samples: Floats) -> list[int]:
    """Find the indices at which the mean or the variance of the log samples changes."""
    signal = _prepared(samples)
    if signal is None:
        return []
    per_point = -(-signal.size // _MOST_POINTS)
    whole = signal.size // per_point * per_point
    # The median of a group that holds a change belongs to one side of it; a mean would make a level between.
    points = np.median(signal[signal.size - whole :].reshape(-1, per_point), axis=1)
    found = _cheapest_cuts(points / np.diff(points).std())
    return [signal.size - whole + index * per_point for index in found]


def _prepared(samples: Floats) -> Floats | None:
    """Prepare the log samples for a normal cost, or return None if they are all the same.

    A clock with coarse ticks repeats values, and a segment of equal values has no variance, which a normal
    cost takes for a change; each reading may be any time within its tick, so it is spread over it.
    """
    distinct = np.unique(samples)
    if distinct.size == 1:
        return None
    tick = float(np.diff(distinct).min())
    spread = np.random.default_rng(0).uniform(-0.5, 0.5, samples.size) * min(tick, float(distinct[0]))
    return _without_single_outliers(np.log(samples + spread))


def _without_single_outliers(logs: Floats) -> Floats:
    """Put the local median where up to three samples in a row are far from their neighbourhood.

    Far is 5.7 times the quartile range of the 25 samples around, 7.7 standard deviations of normal noise; the
    quartiles bear up to a quarter of outliers. Four in a row stay, since they may be a change. Clipping
    instead of replacing left enough variance behind to call half of all flat processes with 5 % of outliers
    changed, and letting three in a row stay 1.7 % of them.
    """
    window = min(_OUTLIER_WINDOW, logs.size)
    starts = np.clip(np.arange(logs.size) - window // 2, 0, logs.size - window)
    around = np.lib.stride_tricks.sliding_window_view(logs, window)[starts]
    low, middle, high = _quartiles(around)
    far = np.abs(logs - middle) > 5.7 * (high - low)
    windows_of = np.lib.stride_tricks.sliding_window_view
    four_in_a_row = windows_of(np.pad(far, 3), 4).all(axis=-1)
    in_a_run = windows_of(four_in_a_row, 4).any(axis=-1)
    return np.where(far & ~in_a_run, middle, logs)


def _quartiles(rows: Floats) -> Floats:
    """Those of numpy.quantile. Of a whole window they are elements of it, which sorting finds ten times as fast."""
    steps, between = divmod(rows.shape[1] - 1, 4)
    if between:
        return np.quantile(rows, [0.25, 0.5, 0.75], axis=1)
    quartiles: Floats = np.sort(rows, axis=1)[:, [steps, 2 * steps, 3 * steps]].T
    return quartiles


def _cheapest_cuts(points: Floats) -> list[int]:
    """Find the cuts of the cheapest partition into segments of two or more points.

    Each segment costs its size times the logarithm of its variance, and a penalty. Exact, by the recursion that PELT
    prunes, which so few points do not need.
    """
    size = points.size
    penalty = 15 * float(np.log(size))
    centred = points - points.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    cheapest = np.full(size + 1, np.inf)  # of the points before each index
    cheapest[0] = 0.0
    last_cut = np.zeros(size + 1, int)
    for end in range(2, size + 1):
        starts = np.arange(end - 1)
        lengths = end - starts
        means = (sums[end] - sums[starts]) / lengths
        variances = (squares[end] - squares[starts]) / lengths - means**2
        costs = cheapest[starts] + lengths * np.log(np.maximum(variances, 0.0) + 1e-6) + penalty
        last_cut[end] = int(costs.argmin())
        cheapest[end] = costs[last_cut[end]]
    cuts: list[int] = []
    end = int(last_cut[size])
    while end:
        cuts.append(end)
        end = int(last_cut[end])
    return cuts[::-1]
