"""What all loops by hand share: turns, the clock, and an open loop of requests. Nothing of fairlap is used here.

A loop takes a turn for each line of its standard input, whose numbers it is given, and answers with one line of times.
Between turns it is stopped, and so is not timed.
"""

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from itertools import cycle, pairwise
from queue import Queue
from statistics import median
from threading import Thread
from time import perf_counter_ns, sleep
from typing import Any

import numpy as np

WARM_UP_S = 0.5
REFILL_S = 0.05  # of a turn: while a loop is stopped, others use the caches
TURN_S = 0.05  # the kernel favours what has just slept, so turns are about as long as those of the race
LONG_TURN_S = 0.4  # beside races that measure in a single turn: of ranks, and of what is fed
AWAKE_NS = 200_000  # before a request is due; a server that spins while it is idle keeps its core warm
TRIAL_S = 4.0
READ_AHEAD = 3
ITEMS = 16  # that requests ask about, in turn
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a framework prints is no answer


def answer(taken_ns: list[int] | list[float]) -> None:
    print(json.dumps(taken_ns), file=ANSWERS, flush=True)


def turns() -> Iterator[list[float]]:
    """Yield the numbers that each turn is given, once everything has been prepared and is warm."""
    answer([])
    for line in sys.stdin:
        yield json.loads(line)


def warm_up(call: Callable[[], Any], seconds: float = WARM_UP_S) -> None:
    until_ns = perf_counter_ns() + int(seconds * 1e9)
    call()
    while perf_counter_ns() < until_ns:
        call()


def calls_ns(call: Callable[[], Any], seconds: float) -> list[int]:
    taken_ns: list[int] = []
    until_ns = perf_counter_ns() + int(seconds * 1e9)
    while perf_counter_ns() < until_ns:
        began_ns = perf_counter_ns()
        call()
        taken_ns.append(perf_counter_ns() - began_ns)
    return taken_ns


def time_calls(call: Callable[[], Any], seconds: float = TURN_S) -> None:
    warm_up(call)
    for _ in turns():
        warm_up(call, REFILL_S)
        answer(calls_ns(call, seconds))


def time_mix(calls: dict[int, Callable[[], Any]], counts: dict[int, int]) -> None:
    """Answer with the size and the time of each call in turn; there are as many of a size as it has counts."""
    sizes = [size for size, count in counts.items() for _ in range(count)]
    for call in calls.values():
        warm_up(call, WARM_UP_S / len(calls))
    for _ in turns():
        refilling = cycle(random.sample(sizes, len(sizes)))
        warm_up(lambda refilling=refilling: calls[next(refilling)](), REFILL_S)
        taken_ns: list[int] = []
        until_ns = perf_counter_ns() + int(TURN_S * 1e9)
        while perf_counter_ns() < until_ns:
            for size in random.sample(sizes, len(sizes)):
                began_ns = perf_counter_ns()
                calls[size]()
                taken_ns += [size, perf_counter_ns() - began_ns]
        answer(taken_ns)


def time_steps_of_epochs(
    step: Callable[..., Any],
    batches_of_an_epoch: Callable[[], list[Any]],
    wait: Callable[[], Any] = lambda: None,
) -> None:
    """Answer with the mean step of a whole epoch in each turn.

    Its batches are made before: making them between steps lets the threads of a framework fall asleep.
    """
    for _ in turns():
        batches = batches_of_an_epoch()
        refilling = cycle(batches)
        warm_up(lambda refilling=refilling: step(*next(refilling)), REFILL_S)
        wait()
        began_ns = perf_counter_ns()
        for batch in batches:
            step(*batch)
        wait()
        answer([(perf_counter_ns() - began_ns) / len(batches)])


def time_fed_batches(
    data: np.ndarray, use: Callable[[Any], Any], tensor_of: Callable[[np.ndarray], Any] = np.asarray
) -> None:
    """Time batches of eight, taken in random order: each from the end of the one before to its own.

    A thread reads ahead, since no expert lets a model wait for its batches.
    """
    ready: Queue[Any] = Queue(READ_AHEAD)
    draw = np.random.default_rng()

    def read_ahead() -> None:
        while True:
            for places in draw.permutation(len(data)).reshape(-1, 8):
                ready.put(tensor_of(data.take(places, axis=0)))

    Thread(target=read_ahead, daemon=True).start()
    warm_up(lambda: use(ready.get()))
    for _ in turns():
        warm_up(lambda: use(ready.get()), REFILL_S)
        ends_ns = [perf_counter_ns()]
        while ends_ns[-1] < ends_ns[0] + LONG_TURN_S * 1e9:
            use(ready.get())
            ends_ns.append(perf_counter_ns())
        answer([end - began for began, end in pairwise(ends_ns)])


def time_requests(call: Callable[[], Any]) -> None:
    """Answer with the latencies at the rate that the turn is given."""
    warm_up(call)
    for [rate_per_s] in turns():
        warm_up(call, REFILL_S)
        answer(latencies_ns(call, rate_per_s, TRIAL_S))


def latencies_ns(call: Callable[[], Any], rate_per_s: float, seconds: float) -> list[int]:
    """Time requests that arrive at random, as many as the rate has in this time.

    A latency is from when a request was due until it was answered, one at a time.
    """
    places = sorted(random.random() for _ in range(round(rate_per_s * seconds)))
    began_ns, found = perf_counter_ns() + 1_000_000, []
    for place in places:
        each_ns = began_ns + int(place * seconds * 1e9)
        if (ahead_ns := each_ns - AWAKE_NS - perf_counter_ns()) > 0:
            sleep(ahead_ns / 1e9)
        while perf_counter_ns() < each_ns:
            pass
        call()
        found.append(perf_counter_ns() - each_ns)
    return found


def of_items(call: Callable[[Any], Any], draw: Callable[[], Any]) -> Callable[[], Any]:
    """Call it on another item each time, as requests are."""
    items = cycle([draw() for _ in range(ITEMS)])
    return lambda: call(next(items))


def percentile(values: list[int], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def search_largest_rate(call: Callable[[], Any]) -> None:
    """Answer with the largest rate at which 99 of 100 requests meet the bound that the turn is given, in nanoseconds.

    It is found by halving. In trials of 2 s, it found 3 % more than theory has for services of 0.7 ms: late requests
    come in bursts, and most short trials have none.
    """
    warm_up(call)
    for [bound_ns] in turns():
        high = 1e9 / median(calls_ns(call, WARM_UP_S))
        low = high / 2
        while high > 1.01 * low:
            rate = (low + high) / 2
            if percentile(latencies_ns(call, rate, TRIAL_S), 0.99) <= bound_ns:
                low = rate
            else:
                high = rate
        answer([(low + high) / 2])


def run(scenarios: dict[str, Callable[[], None]]) -> None:
    """Run the one that the command line names."""
    scenarios[sys.argv[1]]()
