"""A race of two commits or releases of a search, as if it had been run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from fairlap.bisection.races import Raced
from fairlap.judgement.judgement import SpeedupInterval, decided


def raced_at(level: float, logs: npt.NDArray[np.float64]) -> Raced:
    """By the log ratio that is true, and those of the blocks."""
    interval = SpeedupInterval(float(np.exp(-level - 0.02)), float(np.exp(-level + 0.02)), 0.05)
    found = decided(
        "undecided", "not_proven_faster", "raced", speedup=float(np.exp(-level)), interval=interval,
        blocks=logs.size, ended_undecided=True, seconds=1.0,
    )  # fmt: skip
    return Raced(tuple(logs.tolist()), found)
