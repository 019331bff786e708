"""How much slower the machine was in each run, by the contestants of the run whose versions did not change.

Their log times follow a two-way model: a level for each contestant and version, and a drift for each run. Both are
found by Tukey's median polish, which one odd contestant among several does not move.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_MOST_ROUNDS = 30
_CLOSE = 1e-9
_RUNS_AT_A_BORDER = 20


@dataclass(frozen=True)
class Control:
    """What one contestant of one version took in its runs."""

    level: Hashable  # the contestant and its version
    runs: Places
    logs: Floats


def machine_drift(controls: Sequence[Control], runs: int) -> Floats:
    """Estimate the drift of every run as a logarithm; NaN where no control ran that ran in another run too."""
    kept = [each for each in controls if each.runs.size > 1]
    drift = np.full(runs, np.nan)
    if not kept:
        return drift
    at_run = np.concatenate([each.runs for each in kept])
    at_level = np.repeat(np.arange(len(kept)), [each.runs.size for each in kept])
    logs = np.concatenate([each.logs for each in kept])
    present = np.unique(at_run)
    drift[present] = 0.0
    for _ in range(_MOST_ROUNDS):
        levels = _group_medians(logs - drift[at_run], at_level, len(kept))
        moved = _group_medians(logs - levels[at_level], at_run, runs)[present]
        change = float(np.abs(moved - drift[present]).max())
        drift[present] = moved
        if change < _CLOSE:
            break
    return _joined(drift, kept, runs)


def _group_medians(values: Floats, groups: Places, count: int) -> Floats:
    """Compute the median of each group; NaN for one without values."""
    order = np.lexsort((values, groups))
    values, sizes = values[order], np.bincount(groups, minlength=count)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    found = np.full(count, np.nan)
    some = sizes > 0
    low, high = (starts + (sizes - 1) // 2)[some], (starts + sizes // 2)[some]
    found[some] = (values[low] + values[high]) / 2
    return found


def _joined(drift: Floats, controls: Sequence[Control], runs: int) -> Floats:
    """Continue the drift from where it was, where all controls changed at once.

    Nothing ties the runs after such a change to those before.
    """
    at_run = np.concatenate([each.runs for each in controls])
    component = _components(controls, runs)
    present = np.unique(at_run)
    own = component[present]
    for number in dict.fromkeys(own.tolist()):
        here = present[own == number]
        before = present[present < here[0]]
        if before.size:
            last = drift[before[-_RUNS_AT_A_BORDER:]]
            drift[here] += np.median(last) - np.median(drift[here[:_RUNS_AT_A_BORDER]])
    return drift


def _components(controls: Sequence[Control], runs: int) -> Places:
    """Give each run a number; those that controls tie together, directly or over others, have the same one."""
    component = np.arange(runs)
    while True:
        before = component.copy()
        for each in controls:
            component[each.runs] = component[each.runs].min()
        if np.array_equal(component, before):
            return component
