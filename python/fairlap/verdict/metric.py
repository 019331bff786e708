"""What is compared: its name, its unit, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A quantity with one positive figure per process.

    `is_speed` decides the words: times and throughputs make a contestant "1.18 times as fast"; anything
    else, such as memory or energy, is "0.85 times that of" the other.
    """

    name: str
    unit: str
    better: Literal["lower", "higher"] = "lower"
    is_speed: bool = True
    inverse: str = ""  # what people know instead; the words are then about it
    given_key: str = ""  # where options call it something else than its name

    @property
    def key(self) -> str:
        """What options call it: ``cpu_time``."""
        return self.given_key or self.name.lower().replace(" ", "_")


LATENCY = Metric("latency", "ns")
REPORTED_TIME = Metric("reported time", "ns")
METRICS_OF_CALLS = {"wall_ns": LATENCY, "reported_ns": REPORTED_TIME}
"""By the headline of its processes, what a contestant is ranked by that does nothing but calls."""

TIME_TO_SCORE = Metric("time to score", "ns")
TIME_PER_REQUEST = Metric("time per request at the largest rate", "ns", inverse="largest rate")
THROUGHPUT = Metric("throughput", "items/s", better="higher")
COMPILE_TIME = Metric("compile time", "ns", is_speed=False)
TIME_TO_FIRST_INFERENCE = Metric("time to first inference", "ns", is_speed=False)
TIME_TO_FIRST_GRADIENT = Metric("time to first gradient", "ns", is_speed=False)
QUANTITIES_OF_A_START = frozenset({COMPILE_TIME, TIME_TO_FIRST_INFERENCE, TIME_TO_FIRST_GRADIENT})
"""Known of processes that started alone."""

ALLOCATIONS = Metric("allocations per call", "", is_speed=False, given_key="allocations")
ALLOCATED = Metric("memory allocated per call", "B", is_speed=False, given_key="allocated")
QUANTITIES_COUNTED = frozenset({ALLOCATIONS, ALLOCATED})
"""Known of processes that counted them, which a race does when it is asked."""
