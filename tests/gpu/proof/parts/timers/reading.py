"""A timer's reading of a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

SPAN, KERNELS = "span", "kernels"
"""What is timed: from event to event including gaps, or the sum of the kernels' times."""

SECONDS_FOR_ONE = 0.25
LEAST_CALLS, MOST_CALLS = 20, 400


@dataclass(frozen=True)
class Reading:
    ns: float  # the median of the samples, of one call
    quantity: str  # SPAN or KERNELS
    samples: int
    host_ns_per_sample: float | None = None  # host time of a sample, less the call
    note: str = ""


def calls_for(call: Callable[[], Any], wait: Callable[[], Any]) -> int:
    """Return how many calls fit into the time for one case; the first calls load and compile."""
    for _ in range(3):
        call()
    wait()
    begun = time.perf_counter()
    for _ in range(5):
        call()
    wait()
    each_s = (time.perf_counter() - begun) / 5
    return max(LEAST_CALLS, min(MOST_CALLS, round(SECONDS_FOR_ONE / max(each_s, 1e-7))))


def issue_ns(call: Callable[[], Any], wait: Callable[[], Any], calls: int) -> float:
    """Return what an untimed call costs the host while the device is idle."""
    readings = []
    for _ in range(5):
        wait()
        begun = time.perf_counter_ns()
        for _ in range(calls):
            call()
        readings.append((time.perf_counter_ns() - begun) / calls)
    wait()
    return median(readings)


def middle(values: Sequence[float]) -> float:
    return float(median(values))


def notices_of(result: Any) -> str:
    return ", ".join(notice.code for notice in result.warnings)
