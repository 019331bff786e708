"""How late requests are issued, what keeping them on time costs, and what a request costs on its way to the service.

Lateness: 1,000 Poisson arrivals per second, for several lengths of spinning before a request is due, once with a worker
that has nothing to do and once with workers that keep every core but one busy for half of the time. The CPU time is
that of all threads, without the services.

Cost: a service that does nothing behind fairlap's queue and behind a hand-written server (`queue.Queue`, one thread
that sleeps until a request is due, one that serves), in turns. Once with requests at equal distances, and once with all
of them due at once, where the time per request is all cost.

Run it with ``make bench-load``.
"""

from __future__ import annotations

import argparse
import os
import queue
import threading
import time
from collections.abc import Callable

import numpy as np
from fairlap.engine.load import (
    SPIN_NS,
    LoadResult,
    NativeService,
    Worker,
    constant_arrivals_ns,
    random_arrivals_ns,
    run_load,
)
from numpy.typing import NDArray

RATE_PER_S = 1000
_SPINS_US = (0, 10, 20, 30, 50, 100)
_US = 1e3


def nothing() -> None:
    pass


def quantiles_us(ns: NDArray[np.float64]) -> str:
    p50, p99, largest = np.quantile(ns, (0.5, 0.99, 1.0)) / _US
    return f"{p50:.1f} µs | {p99:.1f} µs | {largest:.0f} µs"


def lateness(seconds: float, repeats: int) -> None:
    print("| cores | spins before | p50 | p99 | largest | CPU |")
    print("| --- | --- | --- | --- | --- | --- |")
    busy_ns = 0.5e9 / RATE_PER_S * max(1, (os.cpu_count() or 2) - 1)
    workers: dict[str, list[Worker | NativeService]] = {
        "idle": [Worker([nothing])],
        "half busy": [NativeService(busy_ns)] * max(1, (os.cpu_count() or 2) - 1),
    }
    for cores, serving in workers.items():
        for spin_us in _SPINS_US:
            results, before_s = [], time.process_time()
            for repeat in range(repeats):
                due_ns = random_arrivals_ns(round(RATE_PER_S * seconds / repeats), RATE_PER_S, seed=repeat)
                items = np.zeros(due_ns.size, np.uint32)
                results.append(run_load(due_ns, items, serving, spin_ns=spin_us * _US))
            late = np.concatenate([result.lateness_ns for result in results])
            served_ns = sum(float((each.completed_ns - each.started_ns).sum()) for each in results)
            cpu_ns = 1e9 * (time.process_time() - before_s) - served_ns
            share = cpu_ns / sum(each.elapsed_ns for each in results)
            mark = " (default)" if spin_us * _US == SPIN_NS else ""
            print(f"| {cores} | {spin_us} µs{mark} | {quantiles_us(late)} | {share:.1%} of a core |", flush=True)


def fairlap_load(due_ns: NDArray[np.float64]) -> NDArray[np.float64]:
    result: LoadResult = run_load(due_ns, np.zeros(due_ns.size, np.uint32), [Worker([nothing])])
    return result.latency_ns


def queue_load(due_ns: NDArray[np.float64]) -> NDArray[np.float64]:
    """As one would write it: a thread that issues, a thread that serves."""
    waiting: queue.Queue[int | None] = queue.Queue()
    calls = [nothing]
    completed_ns = np.full(due_ns.size, np.nan)
    due_s = (due_ns / 1e9).tolist()
    start_s = time.perf_counter() + 0.01

    def issue() -> None:
        for request, due in enumerate(due_s):
            ahead_s = start_s + due - time.perf_counter()
            if ahead_s > 0:
                time.sleep(ahead_s)
            waiting.put(request)
        waiting.put(None)

    def serve() -> None:
        while (request := waiting.get()) is not None:
            calls[0]()
            completed_ns[request] = (time.perf_counter() - start_s) * 1e9

    threads = [threading.Thread(target=each) for each in (issue, serve)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return completed_ns - due_ns


def cost(seconds: float, requests: int, repeats: int) -> None:
    servers: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
        "fairlap": fairlap_load,
        "queue.Queue": queue_load,
    }
    latencies: dict[str, list[NDArray[np.float64]]] = {name: [] for name in servers}
    cpu_us: dict[str, list[float]] = {name: [] for name in servers}
    burst_us: dict[str, list[float]] = {name: [] for name in servers}
    arrivals_ns = constant_arrivals_ns(RATE_PER_S, seconds / repeats)
    for repeat in range(repeats):
        for name in list(servers) if repeat % 2 else list(servers)[::-1]:
            before_s = time.process_time()
            latencies[name].append(servers[name](arrivals_ns))
            cpu_us[name].append((time.process_time() - before_s) / arrivals_ns.size * 1e6)
            burst_us[name].append(float(servers[name](np.zeros(requests)).max()) / requests / _US)
    print(
        f"| server | {RATE_PER_S} per second: p50 | p99 | largest | CPU per request | all at once: time per request |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name in servers:
        latency = quantiles_us(np.concatenate(latencies[name]))
        print(f"| {name} | {latency} | {np.median(cpu_us[name]):.1f} µs | {np.median(burst_us[name]):.2f} µs |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=10, help="of each load")
    options.add_argument("--requests", type=int, default=100_000, help="that are due at once")
    options.add_argument("--repeats", type=int, default=4, help="parts of each load, in turns")
    given = options.parse_args()
    print(f"{os.cpu_count()} cores; load average {os.getloadavg()[0]:.2f}\n")
    lateness(given.seconds, given.repeats)
    print()
    cost(given.seconds, given.requests, given.repeats)


if __name__ == "__main__":
    main()
