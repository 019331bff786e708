"""Callables of about 1, 50 and 5,000 microseconds in NumPy, and the loop that times one as a user would.

Each call gets arguments that no call has had, and as many calls are timed together as fairlap put into a sample.
"""

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np

SAMPLED_S = 2.0  # the drawing of arguments included


def one_us(a: Any) -> Any:
    return a * a + a


def fifty_us(a: Any) -> Any:
    return np.sin(a)


def five_ms(a: Any) -> Any:
    return np.sin(a)


def median_sample_ns(call: Callable[[Any], Any], draw: Callable[[Any], Any], calls: int) -> float:
    """Time of a call, from samples of so many."""
    rng = np.random.default_rng()
    first = draw(rng)
    warm_up(lambda: call(first))
    taken_ns: list[float] = []
    until_ns = perf_counter_ns() + int(SAMPLED_S * 1e9)
    while perf_counter_ns() < until_ns or len(taken_ns) < 5:
        drawn = [draw(rng) for _ in range(calls)]
        began_ns = perf_counter_ns()
        for each in drawn:
            call(each)
        taken_ns.append((perf_counter_ns() - began_ns) / len(drawn))
    return median(taken_ns)


if __name__ == "__main__":
    import untrusted_task
    from timing import answer, turns, warm_up

    name = sys.argv[1]
    for [calls] in turns():
        answer([median_sample_ns(globals()[name], getattr(untrusted_task, f"draw_{name}"), int(calls))])
