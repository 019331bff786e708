"""Callables of about 1, 50 and 5,000 microseconds in NumPy, and the loop that times one as a user would.

Each call gets arguments of its own, and as many calls are timed together as fairlap put into a sample.
"""

import json
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np


def one_us(a: Any) -> Any:
    return a * a + a


def fifty_us(a: Any) -> Any:
    return np.sin(a)


def five_ms(a: Any) -> Any:
    return np.sin(a)


def median_sample_ns(call: Callable[[Any], Any], drawn: list[Any]) -> float:
    """Time of a call, from samples that call it with each of the arguments."""
    warm_up(lambda: call(drawn[0]))
    taken_ns: list[float] = []
    until_ns = perf_counter_ns() + int(MEASURED_S * 1e9)
    while perf_counter_ns() < until_ns or len(taken_ns) < 5:
        began_ns = perf_counter_ns()
        for each in drawn:
            call(each)
        taken_ns.append((perf_counter_ns() - began_ns) / len(drawn))
    return median(taken_ns)


if __name__ == "__main__":
    import untrusted_task
    from timing import MEASURED_S, warm_up

    name, calls = sys.argv[1], int(sys.argv[2])
    rng = np.random.default_rng()
    drawn = [getattr(untrusted_task, f"draw_{name}")(rng) for _ in range(calls)]
    print(json.dumps(median_sample_ns(globals()[name], drawn)))
