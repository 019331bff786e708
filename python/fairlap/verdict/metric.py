"""What is compared: its name, its unit, and which way is better."""

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


LATENCY = Metric("latency", "ns")
REPORTED_TIME = Metric("reported time", "ns")
METRICS_OF_CALLS = {"wall_ns": LATENCY, "reported_ns": REPORTED_TIME}
"""By the headline of its processes, what a contestant is ranked by that does nothing but calls."""

TIME_TO_SCORE = Metric("time to score", "ns")
TIME_PER_REQUEST = Metric("time per request at the largest rate", "ns", inverse="largest rate")
THROUGHPUT = Metric("throughput", "items/s", better="higher")
COMPILE_TIME = Metric("compile time", "ns", is_speed=False)
TIME_TO_FIRST_GRADIENT = Metric("time to first gradient", "ns", is_speed=False)
