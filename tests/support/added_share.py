"""What one callable takes longer than another, while they take turns call by call in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fairlap.engine import time_calls
from fairlap.verdict.exact_tests.signed_rank import sign_interval

WARM_UP_STEPS = 10

Call = Callable[[], Any]


def added_share(
    ours: Call, theirs: Call, done: Callable[[Any], Any] | None, *, rounds: int, steps: int
) -> dict[str, float]:
    """Estimate the share that ``ours`` adds, with its interval, and the time of ``theirs``.

    They take turns in rounds of so many steps of each, in every other of which the other one begins.
    """
    found = []
    for _ in range(rounds // 2):
        found.append(_quartiles_ns(ours, theirs, done, steps))
        found.append(_quartiles_ns(theirs, ours, done, steps)[::-1])
    logs = np.log([ours_ns / theirs_ns for ours_ns, theirs_ns in found])
    low, high = sign_interval(logs, 0.05)
    return {
        "by hand": float(np.median([theirs_ns for _, theirs_ns in found])),
        "share": float(np.expm1(np.median(logs))),
        "low": float(np.expm1(low)),
        "high": float(np.expm1(high)),
    }


def _quartiles_ns(first: Call, second: Call, done: Callable[[Any], Any] | None, steps: int) -> tuple[float, float]:
    found = time_calls(
        first, in_turn=[second], done=done, samples=2 * steps, warmup=2 * WARM_UP_STEPS, calls_per_sample=1
    )
    of_first, of_second = np.nanquantile(found.wall_ns.reshape(-1, 2), 0.25, axis=0)
    return float(of_first), float(of_second)
