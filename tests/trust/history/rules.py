"""The rules that are compared: each takes the log times of a series and returns where it claims a change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np
from fairlap.history.change_points import FEWEST_RUNS, PENALTY, change_points

Rule = Callable[[np.ndarray], list[int]]


def otava(logs: np.ndarray, *, max_pvalue: float) -> list[int]:
    """Apache Otava's own function with its window of 50; it takes times, not their logarithms."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found,unused-ignore]

    if logs.size < FEWEST_RUNS:
        return []
    found, _ = compute_change_points(np.exp(logs).tolist(), window_len=50, max_pvalue=max_pvalue)
    return [int(each.index) for each in found]


def rules() -> dict[str, Rule]:
    """fairlap's first; Otava's where it is installed."""
    found: dict[str, Rule] = {f"ruptures, PELT, penalty {PENALTY:g} ln n (fairlap's)": change_points}
    for penalty in (5.0, 10.0, 20.0):
        found[f"ruptures, PELT, penalty {penalty:g} ln n"] = partial(change_points, penalty=penalty)
    if find_spec("otava"):
        for max_pvalue in (1e-3, 1e-5):
            found[f"Otava, p < {max_pvalue:g}"] = partial(otava, max_pvalue=max_pvalue)
    return found
