"""Compare the measured roofs with loops in assembly, OpenBLAS's matrix product and a triad as STREAM runs it.

All take turns, so that a busy machine meets each alike.

A roof should be within 3 % of the best of the loops in assembly, which `roofs_in_assembly.py` times as roofs are timed.
For a number type these are all instructions of the processor that compute in it, and for bf16 also those of fp32, to
which libraries widen it. A level of the memory has triads over vectors of 256 and of 512 bits, each unrolled two, four
and eight times; in memory their stores bypass the caches. Their arrays have another size than the roof's: half of L1,
and of the other caches the geometric mean of the level and the one inside it. Every page is there before, in huge pages
where the system gives them. Number types for which the processor lacks the instructions have no line.

OpenBLAS multiplies matrices of 2048 x 2048 in float32. The triad like STREAM's is a loop in C, compiled for this
processor and without stores that bypass the caches, over arrays of together at least four times the last cache; every
thread has its part. Of both the best turn counts, as is usual for them. A turn takes a tenth of a second, in which
other programs interrupt it on a busy machine, so its time is the CPU time of its threads where that is shorter; what
other programs displaced from the caches still slows them down. A roof should be no more than 5 % below what they reach.

Run it with ``make bench-roofs``.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fairlap.engine.roofs import Team, Trials, arithmetic_trials, instructions_for, triad_trials
from fairlap.machine.hardware import processor
from fairlap.machine.hardware.roofs import MEMORY, NUMBER_TYPES, cache_working_sets, usable_cores
from fairlap.machine.root import THIS_MACHINE
from roofs_in_assembly import BestOf, arithmetic_loops, compiled, triad_loops, triad_sizes
from threadpoolctl import threadpool_limits

_SIZE = 2048
_SOURCE = """
void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
}
"""


def product(threads: int) -> Callable[[], float]:
    left, right = (np.random.default_rng(seed).standard_normal((_SIZE, _SIZE), dtype=np.float32) for seed in (0, 1))
    out = np.empty_like(left)

    def operations_per_s() -> float:
        with threadpool_limits(threads, user_api="blas"):
            began_s, cpu_began_s = time.perf_counter(), time.process_time()
            np.matmul(left, right, out=out)
            cpu_s, took_s = time.process_time() - cpu_began_s, time.perf_counter() - began_s
            return 2.0 * _SIZE**3 / min(took_s, cpu_s / threads)

    return operations_per_s


def stream_triad(library: ctypes.CDLL, elements: int, threads: int, pool: ThreadPoolExecutor) -> Callable[[], float]:
    """``elements`` is the length of each array, of which every thread has its part."""
    part = elements // threads

    def arrays() -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
        return [np.full(part, value) for value in (1.0, 2.0, 0.5)]

    parts = list(pool.map(lambda _: arrays(), range(threads)))
    pointers = [[ctypes.c_void_p(array.ctypes.data) for array in own] for own in parts]

    def cpu_s(own: list[ctypes.c_void_p]) -> float:
        began_s = time.thread_time()
        library.triad(*own, ctypes.c_double(0.4), ctypes.c_size_t(part))
        return time.thread_time() - began_s

    def bytes_per_s() -> float:
        began_s = time.perf_counter()
        longest_cpu_s = max(pool.map(cpu_s, pointers))
        took_s = time.perf_counter() - began_s
        assert len(parts) == threads  # the arrays live as long as their pointers
        return 24.0 * part * threads / min(took_s, longest_cpu_s)

    return bytes_per_s


@dataclass
class BestTurn:
    """Of a program that gives a rate each time."""

    program: Callable[[], float]
    rates: list[float] = field(default_factory=list)

    def take(self) -> None:
        self.rates.append(self.program())

    def best(self) -> float:
        return max(self.rates)


def compare(threads: int, turns: int, library: ctypes.CDLL) -> None:
    cores = usable_cores()
    flags = processor.flags(THIS_MACHINE)
    team = Team(threads, tuple(cores) if threads == len(cores) else ())
    caches = processor.data_caches(THIS_MACHINE, cores)
    total_bytes = max(256 * 2**20, 4 * caches[-1].size_bytes * min(threads, caches[-1].count) if caches else 0)
    levels = {MEMORY: total_bytes // threads}
    levels |= {k: v for k, v in cache_working_sets(caches, threads, len(cores)).items() if isinstance(v, int)}
    memory = triad_trials(total_bytes // threads, team, in_caches=False)
    with ThreadPoolExecutor(threads) as pool:
        stream = BestTurn(stream_triad(library, total_bytes // 24, threads, pool))
        compared: list[tuple[str, str, Trials, str, BestTurn | BestOf]] = [
            ("fp32", "Gop/s", arithmetic_trials("fp32", team), "OpenBLAS", BestTurn(product(threads))),
            (MEMORY, "GB/s", memory, "a loop like STREAM's", stream),
        ]
        for name in NUMBER_TYPES:
            if instructions_for(name) and (loops := arithmetic_loops(library, name, flags)):
                best = BestOf(loops, threads, pool)
                compared.append((name, "Gop/s", arithmetic_trials(name, team), "loops in assembly", best))
        if "avx512f" in flags:
            middles = triad_sizes(levels, caches, threads, len(cores))
            for level, size in levels.items():
                in_caches = level != MEMORY
                best = BestOf(triad_loops(library, middles[level], threads, in_caches=in_caches), threads, pool)
                trials = memory if level == MEMORY else triad_trials(size, team, in_caches=True)
                compared.append((level, "GB/s", trials, "triads in assembly", best))
        for _ in range(turns):
            for _, _, trials, _, other in compared:
                trials.take(0.1)
                other.take()
    for what, unit, trials, by, other in compared:
        roof, reached = trials.roof(), other.best()
        print(
            f"| {threads} | {what}, {unit} | {roof.value / 1e9:.1f} [{roof.low / 1e9:.1f}, {roof.high / 1e9:.1f}] | "
            f"{by} | {reached / 1e9:.1f} | {roof.value / reached:.2f} | {trials.instructions} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    given = parser.parse_args()
    print("| threads | roof | measured | compared with | its best | ratio | instructions |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder), _SOURCE, processor.flags(THIS_MACHINE))
        before = os.getloadavg()[0]
        for threads in sorted({1, len(usable_cores())}):
            compare(threads, given.turns, library)
        print(f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
