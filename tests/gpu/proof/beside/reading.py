"""What a timer said of a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

SPAN, KERNELS = "span", "kernels"
"""What is timed: from event to event, gaps included; or the kernels' own time."""

SECONDS_FOR_ONE = 0.25
LEAST_CALLS, MOST_CALLS = 20, 400


@dataclass(frozen=True)
class Reading:
    ns: float  # the median of the samples, of one call
    quantity: str  # SPAN or KERNELS
    samples: int
    host_ns_per_sample: float | None = None  # what a sample took on the host, the call itself taken off
    told: str = ""


def calls_for(call: Callable[[], Any], wait: Callable[[], Any]) -> int:
    """As many as fit into the time for one case; the first calls load and compile."""
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
    """What the call costs the host when nobody times it, on a device with nothing else to do."""
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
