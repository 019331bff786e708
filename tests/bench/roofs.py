"""Compare the measured roofs with loops in assembly, OpenBLAS's matrix product and a triad as STREAM runs it.

All take turns, so that a busy machine meets each alike; of the others the best turn counts, as is usual for them.
A turn of theirs takes a tenth of a second, in which other programs interrupt it on a busy machine, so its time is the
CPU time of its threads where that is shorter; what other programs displaced from the caches still slows them down.
The loops in assembly name their registers, so no compiler can add anything to them: a roof should be within 3 % of
them. Each level of the memory has a triad in assembly over arrays of the same size, in memory with stores that bypass
the caches; those of the caches use the widest vectors only, and roofs were 4 to 12 % above them. The roof of bf16 is
above its loop where products widened to fp32 are faster than the processor's instructions for bf16. Number types for
which the processor lacks the instructions have no line.

OpenBLAS multiplies matrices of 2048 x 2048 in float32. The triad like STREAM's is a loop in C, compiled for this
processor and without stores that bypass the caches, over arrays of together at least four times the last cache; every
thread has its part. A roof should be no more than 5 % below what one of these programs reaches.

Run it with ``make bench-roofs``.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from fairlap.engine.roofs import Team, arithmetic_trials, has_instructions, triad_trials
from fairlap.machine import processor
from fairlap.machine.roofs import MEMORY, cache_working_sets, usable_cores
from fairlap.machine.root import THIS_MACHINE
from threadpoolctl import threadpool_limits

_SIZE = 2048
_SOURCE = """
#include <stddef.h>
void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
}
"""

_REGISTERS = 24
_ROUNDS = 2_000_000
_LOOPS = {  # of a processor with AVX-512: flag, instruction, operations of one
    "fp32": ("avx512f", "vfmadd231ps %zmm30, %zmm31, {}", 32),
    "fp64": ("avx512f", "vfmadd231pd %zmm30, %zmm31, {}", 16),
    "bf16": ("avx512_bf16", "vdpbf16ps %zmm30, %zmm31, {}", 64),
    "int8": ("avx512_vnni", "vpdpbusd %zmm30, %zmm31, {}", 128),
}


def assembly(name: str, instruction: str) -> str:
    """A function that counts its argument down, with an instruction for each of the registers in every round."""
    registers = [f"%zmm{number}" for number in range(_REGISTERS)]
    zeros = [f"vpxorq {each}, {each}, {each}" for each in (*registers, "%zmm30", "%zmm31")]
    lines = [*zeros, "1:", *(instruction.format(each) for each in registers), "dec %rdi", "jnz 1b", "vzeroupper", "ret"]
    return "\n".join((f".globl loop_{name}", f"loop_{name}:", *lines, ""))


_TRIADS = {"cached": "vmovapd", "streaming": "vmovntpd"}  # how each writes
_TRIAD_UNROLLED = 4  # vectors of eight doubles
_TRIAD_TURN_S = 0.03
_APART_BYTES = 1344  # on top of whole pages, so that no store waits for a load at the same place of another page


def triad_assembly(name: str, store: str) -> str:
    """``triad_NAME(a, b, c, bytes, passes, s)``: for each vector of c a fused multiply-add with b from memory."""
    body = [
        line
        for number in range(_TRIAD_UNROLLED)
        for line in (
            f"vmovapd {64 * number}(%rdx,%rax), %zmm{number}",
            f"vfmadd213pd {64 * number}(%rsi,%rax), %zmm31, %zmm{number}",
            f"{store} %zmm{number}, {64 * number}(%rdi,%rax)",
        )
    ]
    lines = ["vbroadcastsd %xmm0, %zmm31", "1:", "xor %eax, %eax", ".p2align 5", "2:", *body]
    lines += [f"add ${64 * _TRIAD_UNROLLED}, %rax", "cmp %rcx, %rax", "jb 2b", "dec %r8", "jnz 1b"]
    return "\n".join((f".globl triad_{name}", f"triad_{name}:", *lines, "sfence", "vzeroupper", "ret", ""))


def _three_arrays(bytes_each: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], list[int]]:
    """Their addresses, aligned to cache lines; NumPy asks for huge pages where they are large."""
    apart = bytes_each + _APART_BYTES
    memory = np.zeros(3 * apart + 4096, dtype=np.uint8)
    memory += 0  # every page is there
    first = memory.ctypes.data + -memory.ctypes.data % 4096
    return memory, [first + number * apart for number in range(3)]


def assembled_triad(
    library: ctypes.CDLL, bytes_per_thread: int, threads: int, pool: ThreadPoolExecutor, *, in_caches: bool
) -> Callable[[], float]:
    function = getattr(library, "triad_cached" if in_caches else "triad_streaming")
    step = 64 * _TRIAD_UNROLLED
    each = max(step, bytes_per_thread // 3 // step * step)
    parts = list(pool.map(lambda _: _three_arrays(each), range(threads)))

    def stamps(addresses: list[int], passes: int) -> tuple[float, float, float]:
        began_s, cpu_began_s = time.perf_counter(), time.thread_time()
        places = map(ctypes.c_void_p, addresses)
        function(*places, ctypes.c_size_t(each), ctypes.c_size_t(passes), ctypes.c_double(0.4))
        cpu_s = time.thread_time() - cpu_began_s
        return began_s, time.perf_counter(), cpu_s

    def run(passes: int) -> float:
        own = list(pool.map(lambda part: stamps(part[1], passes), parts))
        took_s = max(end for _, end, _ in own) - min(begin for begin, _, _ in own)
        return min(took_s, max(cpu_s for _, _, cpu_s in own))

    passes = 1
    while (took_s := run(passes)) < _TRIAD_TURN_S / 2 and in_caches:
        passes = int(passes * min(50.0, 1 + _TRIAD_TURN_S / took_s))
    return lambda: 3.0 * each * passes * threads / run(passes)


def loop(library: ctypes.CDLL, name: str, threads: int, pool: ThreadPoolExecutor) -> Callable[[], float]:
    function, operations = getattr(library, f"loop_{name}"), _LOOPS[name][2] * _REGISTERS * _ROUNDS

    def cpu_s(_: int) -> float:
        began_s = time.thread_time()
        function(ctypes.c_uint64(_ROUNDS))
        return time.thread_time() - began_s

    def operations_per_s() -> float:
        began_s = time.perf_counter()
        longest_cpu_s = max(pool.map(cpu_s, range(threads)))
        return operations * threads / min(time.perf_counter() - began_s, longest_cpu_s)

    return operations_per_s


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


def compiled(folder: Path) -> ctypes.CDLL:
    (folder / "triad.c").write_text(_SOURCE)
    flags = processor.flags(THIS_MACHINE)
    loops = [assembly(name, instruction) for name, (flag, instruction, _) in _LOOPS.items() if flag in flags]
    if "avx512f" in flags:
        loops += [triad_assembly(name, store) for name, store in _TRIADS.items()]
    (folder / "loops.s").write_text("".join(loops) + '.section .note.GNU-stack,"",@progbits\n')
    library = folder / "triad.so"
    sources = [str(folder / "triad.c"), *([str(folder / "loops.s")] if loops else [])]
    command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", *sources, "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


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


def compare(threads: int, turns: int, library: ctypes.CDLL) -> None:
    cores = usable_cores()
    team = Team(threads, tuple(cores) if threads == len(cores) else ())
    caches = processor.data_caches(THIS_MACHINE, cores)
    total_bytes = max(256 * 2**20, 4 * caches[-1].size_bytes * min(threads, caches[-1].count) if caches else 0)
    levels = {MEMORY: total_bytes // threads}
    levels |= {k: v for k, v in cache_working_sets(caches, threads, len(cores)).items() if isinstance(v, int)}
    arithmetic = arithmetic_trials("fp32", team)
    memory = triad_trials(total_bytes // threads, team, in_caches=False)
    loops = [name for name in _LOOPS if hasattr(library, f"loop_{name}") and has_instructions(name)]
    with ThreadPoolExecutor(threads) as pool:
        compared = [
            ("fp32", "Gop/s", arithmetic, "OpenBLAS", product(threads)),
            ("memory", "GB/s", memory, "a loop like STREAM's", stream_triad(library, total_bytes // 24, threads, pool)),
        ]
        compared += [
            (name, "Gop/s", arithmetic_trials(name, team), "a loop in assembly", loop(library, name, threads, pool))
            for name in loops
        ]
        if hasattr(library, "triad_cached"):
            compared += [
                (
                    level,
                    "GB/s",
                    triad_trials(size, team, in_caches=level != MEMORY),
                    "a triad in assembly",
                    assembled_triad(library, size, threads, pool, in_caches=level != MEMORY),
                )
                for level, size in levels.items()
            ]
        rates: list[list[float]] = [[] for _ in compared]
        for _ in range(turns):
            for (_, _, trials, _, other), reached in zip(compared, rates, strict=True):
                trials.take(0.1)
                reached.append(other())
    for (what, unit, trials, by, _), reached in zip(compared, rates, strict=True):
        roof, best = trials.roof(), max(reached)
        print(
            f"| {threads} | {what}, {unit} | {roof.value / 1e9:.1f} [{roof.low / 1e9:.1f}, {roof.high / 1e9:.1f}] | "
            f"{by} | {best / 1e9:.1f} | {roof.value / best:.2f} | {trials.instructions} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    given = parser.parse_args()
    print("| threads | roof | measured | compared with | its best | ratio | instructions |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        before = os.getloadavg()[0]
        for threads in sorted({1, len(usable_cores())}):
            compare(threads, given.turns, library)
        print(f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
