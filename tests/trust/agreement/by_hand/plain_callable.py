"""A callable of some microseconds, timed as a user of Python does: by ``timeit``, many calls between two readings.

A reading of the clock around each call makes it 3 % longer here: it is in the time, and it empties the pipeline of the
processor.
"""

from time import perf_counter_ns
from timeit import Timer

from timing import REFILL_S, answer, turns, warm_up

NUMBERS = [(each * 7919) % 2000 for each in range(400)]
CALLS = 100
TURN_S = 0.5  # its only turn, after the race


def call() -> None:
    sorted(NUMBERS)


def time_batches() -> None:
    timer = Timer(call)
    warm_up(call)
    for _ in turns():
        warm_up(call, REFILL_S)
        taken_ns: list[float] = []
        until_ns = perf_counter_ns() + int(TURN_S * 1e9)
        while perf_counter_ns() < until_ns:
            taken_ns.append(1e9 * timer.timeit(CALLS) / CALLS)
        answer(taken_ns)


if __name__ == "__main__":
    time_batches()
