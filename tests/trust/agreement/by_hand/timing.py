"""What all loops by hand share: the clock, a warm-up, and an open loop of requests. Nothing of fairlap is used here."""

import json
import random
import sys
from collections.abc import Callable
from itertools import cycle
from queue import Queue
from statistics import median
from threading import Thread
from time import perf_counter_ns, sleep
from typing import Any

import numpy as np

WARM_UP_S = 0.5
MEASURED_S = 0.5
AWAKE_NS = 200_000  # before a request is due; a server that spins while it is idle keeps its core warm
TRIAL_S = 4.0
READ_AHEAD = 3
ITEMS = 16  # that requests ask about, in turn


def warm_up(call: Callable[[], Any]) -> None:
    until_ns = perf_counter_ns() + int(WARM_UP_S * 1e9)
    call()
    while perf_counter_ns() < until_ns:
        call()


def median_call_ns(call: Callable[[], Any]) -> float:
    warm_up(call)
    taken_ns: list[int] = []
    until_ns = perf_counter_ns() + int(MEASURED_S * 1e9)
    while perf_counter_ns() < until_ns or len(taken_ns) < 5:
        began_ns = perf_counter_ns()
        call()
        taken_ns.append(perf_counter_ns() - began_ns)
    return median(taken_ns)


def seconds_of_steps(
    step: Callable[..., Any],
    batches_of_an_epoch: Callable[[], list[Any]],
    steps: int,
    wait: Callable[[], Any] = lambda: None,
) -> float:
    """All batches are made before: making them between epochs lets the threads of a framework fall asleep."""
    batches: list[Any] = []
    while len(batches) < steps:
        batches += batches_of_an_epoch()
    began_ns = perf_counter_ns()
    for batch in batches[:steps]:
        step(*batch)
    wait()
    return (perf_counter_ns() - began_ns) / 1e9


def fed_batch_ns(
    data: np.ndarray, use: Callable[[Any], Any], tensor_of: Callable[[np.ndarray], Any] = np.asarray
) -> float:
    """Time batches of eight, taken in random order: from the first to the last over their number.

    A thread reads ahead, since no expert lets a model wait for its batches.
    """
    ready: Queue[Any] = Queue(READ_AHEAD)
    draw = np.random.default_rng()

    def read_ahead() -> None:
        while True:
            for places in draw.permutation(len(data)).reshape(-1, 8):
                ready.put(tensor_of(data.take(places, axis=0)))

    def batch_ns(seconds: float) -> float:
        batches, began_ns = 0, perf_counter_ns()
        while perf_counter_ns() < began_ns + seconds * 1e9:
            use(ready.get())
            batches += 1
        return (perf_counter_ns() - began_ns) / batches

    Thread(target=read_ahead, daemon=True).start()
    batch_ns(WARM_UP_S)
    return batch_ns(MEASURED_S)


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


def largest_rate_per_s(call: Callable[[], Any], bound_ns: float) -> float:
    """Find the largest rate at which 99 of 100 requests are answered within the bound, by halving.

    In trials of 2 s, it found 3 % more than theory has for services of 0.7 ms: late requests come in bursts, and most
    short trials have none.
    """
    high = 1e9 / median_call_ns(call)
    low = high / 2
    while high > 1.01 * low:
        rate = (low + high) / 2
        if percentile(latencies_ns(call, rate, TRIAL_S), 0.99) <= bound_ns:
            low = rate
        else:
            high = rate
    return (low + high) / 2


def report(scenarios: dict[str, Callable[..., float]]) -> None:
    """Run the one that the command line names, with its numbers after the one of threads, and print its figure."""
    name, _threads, *given = sys.argv[1:]
    print(json.dumps(scenarios[name](*map(float, given))))
