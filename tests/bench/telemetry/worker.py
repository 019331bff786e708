"""One subject in a separate process and interpreter: what it uses, and what it disturbs.

    python worker.py SUBJECT SETTINGS      (the settings are JSON; the result is printed as JSON)

Everything is read from outside the subject: processor time of this process and its children from the kernel, and memory
as their proportional share.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from statistics import median

Monitor = Callable[[], AbstractContextManager[object]]


def processes() -> list[int]:
    found = [os.getpid()]
    for process in found:
        for children in Path(f"/proc/{process}").glob("task/*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def cpu_ns() -> int:
    """Of all processes, threads that have ended included: each has a clock of its own (clock_getcpuclockid(3))."""
    return sum(time.clock_gettime_ns((~process << 3) | 2) for process in processes())


def memory_bytes() -> int:
    lines = (line for each in processes() for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines())
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def loop_lengths(library: ctypes.CDLL, settings: dict[str, int]) -> tuple[float, float]:
    """Median and 99th percentile of the loop, in nanoseconds."""
    lengths = (ctypes.c_double * settings["loops"])()
    library.run_loop(lengths, settings["loops"], settings["turns"])
    ordered = sorted(lengths)
    return median(ordered), ordered[int(0.99 * len(ordered))]


def nothing(settings: dict[str, int], library: ctypes.CDLL) -> Monitor:
    return nullcontext


def waker(settings: dict[str, int], library: ctypes.CDLL) -> Monitor:
    @contextmanager
    def waking() -> Iterator[None]:
        library.start_waker(50_000_000)
        yield
        library.stop_waker()

    return waking


def fairlap(settings: dict[str, int], library: ctypes.CDLL) -> Monitor:
    from fairlap.engine.sampling.telemetry import Sampler

    return lambda: Sampler(nvml_library="libnvidia-ml.so.1")


def zeus(settings: dict[str, int], library: ctypes.CDLL) -> Monitor:
    from zeus.monitor import PowerMonitor

    @contextmanager
    def watching() -> Iterator[None]:
        monitor = PowerMonitor(gpu_indices=[0], update_period=0.1, power_domains=["device_instant"])
        yield
        monitor.stop()

    return watching


def codecarbon(settings: dict[str, int], library: ctypes.CDLL) -> Monitor:
    from codecarbon import OfflineEmissionsTracker

    @contextmanager
    def tracking() -> Iterator[None]:
        tracker = OfflineEmissionsTracker(
            country_iso_code="FRA", measure_power_secs=0.1, save_to_file=False, log_level="critical"
        )
        tracker.start()
        yield
        tracker.stop()

    return tracking


SUBJECTS = {each.__name__: each for each in (nothing, waker, fairlap, zeus, codecarbon)}


def tried(subject: str, settings: dict[str, int]) -> dict[str, object]:
    library = ctypes.CDLL(str(settings["library"]))
    library.run_loop.argtypes = [ctypes.POINTER(ctypes.c_double), ctypes.c_int64, ctypes.c_int64]
    library.start_waker.argtypes = [ctypes.c_int64]
    loop_lengths(library, settings)
    before = memory_bytes()
    monitor = SUBJECTS[subject](settings, library)
    imported = memory_bytes()
    rest_ns = cpu_ns()
    time.sleep(settings["seconds"])
    rest_ns = cpu_ns() - rest_ns
    with monitor():
        time.sleep(1.0)  # what starting costs is not what running costs
        used_ns = cpu_ns()
        time.sleep(settings["seconds"])
        used_ns = cpu_ns() - used_ns
        memory = memory_bytes()
    draw = random.Random(1)
    pairs = []
    for _ in range(settings["pairs"]):
        lengths = {}
        for watched in draw.sample([False, True], 2):
            with monitor() if watched else nullcontext():
                lengths[watched] = loop_lengths(library, settings)
        pairs.append([with_it / without for with_it, without in zip(lengths[True], lengths[False], strict=True)])
    return {
        "cpu_share": (used_ns - rest_ns) / (settings["seconds"] * 1e9),
        "imports_bytes": imported - before,
        "memory_bytes": memory - imported,
        "median_ratios": [pair[0] for pair in pairs],
        "p99_ratios": [pair[1] for pair in pairs],
    }


if __name__ == "__main__":
    print("answer:" + json.dumps(tried(sys.argv[1], json.loads(sys.argv[2]))))
