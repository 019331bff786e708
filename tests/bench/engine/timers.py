"""The timers to compare. Each times one callable, one call per sample."""

from __future__ import annotations

import ctypes
import json
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fairlap


@dataclass(frozen=True)
class Reading:
    """One run of one timer: its median reading, and what the whole run cost for each sample."""

    median_ns: float
    cost_per_sample_ns: float


@dataclass(frozen=True)
class Work:
    """The same work for a timer of Python callables and for one that calls C directly."""

    name: str
    python: Callable[[], object]
    native: object
    length_ns: float
    samples: int


def empty() -> None:
    pass


def load(library: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    loaded.true_length_ns.restype = ctypes.c_double
    loaded.true_length_ns.argtypes = (ctypes.c_uint64,)
    for name in ("empty", "spin_1us", "spin_10us"):
        getattr(loaded, name).argtypes = ()
        getattr(loaded, name).restype = None
    return loaded


def works(native: ctypes.CDLL) -> list[Work]:
    return [
        Work("empty", empty, native.empty, 0.0, 100_000),
        Work("1 us spin", native.spin_1us, native.spin_1us, native.true_length_ns(1_000), 50_000),
        Work("10 us spin", native.spin_10us, native.spin_10us, native.true_length_ns(10_000), 10_000),
    ]


def by_fairlap_native(work: Work, library: Path) -> Reading:
    return _by_fairlap(work.native, work.samples)


def by_fairlap_python(work: Work, library: Path) -> Reading:
    return _by_fairlap(lambda_over(work.python), work.samples)


def lambda_over(fn: Callable[[], object]) -> Callable[[], object]:
    """Wrap a ctypes function, which would be called natively: a Python timer calls it through Python."""
    return (lambda: fn()) if hasattr(fn, "argtypes") else fn


def _by_fairlap(fn: object, samples: int) -> Reading:
    begin = time.perf_counter_ns()
    result = fairlap.measure(fn, samples=samples, warmup=100, calls_per_sample=1)
    whole_ns = time.perf_counter_ns() - begin
    return Reading(result.median_ns, whole_ns / samples)


def by_perf_counter_loop(work: Work, library: Path) -> Reading:
    clock, fn = time.perf_counter_ns, work.python
    readings = [0] * work.samples
    begin = clock()
    for i in range(work.samples):
        start = clock()
        fn()
        readings[i] = clock() - start
    whole_ns = clock() - begin
    return Reading(statistics.median(readings), whole_ns / work.samples)


def by_timeit(work: Work, library: Path) -> Reading:
    begin = time.perf_counter_ns()
    readings = timeit.repeat(work.python, number=1, repeat=work.samples)
    whole_ns = time.perf_counter_ns() - begin
    return Reading(statistics.median(readings) * 1e9, whole_ns / work.samples)


def by_torch_timer(work: Work, library: Path) -> Reading:
    from torch.utils.benchmark import Timer

    timer = Timer("fn()", globals={"fn": work.python})
    samples = work.samples // 20  # each costs hundreds of times what it measures
    begin = time.perf_counter_ns()
    readings = [timer.timeit(1).median * 1e9 for _ in range(samples)]
    whole_ns = time.perf_counter_ns() - begin
    return Reading(statistics.median(readings), whole_ns / samples)


def by_pyperf(work: Work, library: Path) -> Reading:
    """pyperf's own worker, in a process of its own as it wants it."""
    samples = work.samples // 5
    command = [sys.executable, str(Path(__file__)), str(library), work.name, str(samples)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Reading(**json.loads(printed.strip().splitlines()[-1]))


def pyperf_worker(library: Path, work_name: str, samples: int) -> None:
    import pyperf

    work = next(work for work in works(load(library)) if work.name == work_name)
    sys.argv = ["worker", "--worker", "--quiet", "--loops=1", f"--values={samples}", "--warmups=1", "--worker-task=0"]
    runner = pyperf.Runner()
    begin = time.perf_counter_ns()
    bench = runner.bench_func(work.name, work.python)
    whole_ns = time.perf_counter_ns() - begin
    reading = {"median_ns": statistics.median(bench.get_values()) * 1e9, "cost_per_sample_ns": whole_ns / samples}
    print(f"\n{json.dumps(reading)}")


TIMERS = {
    "fairlap, C function": by_fairlap_native,
    "fairlap, Python callable": by_fairlap_python,
    "perf_counter_ns loop": by_perf_counter_loop,
    "timeit": by_timeit,
    "torch.utils.benchmark": by_torch_timer,
    "pyperf": by_pyperf,
}

if __name__ == "__main__":
    pyperf_worker(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
