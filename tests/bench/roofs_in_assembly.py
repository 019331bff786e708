"""Loops in assembly, to compare roofs with: their registers are named, so no compiler can add anything to them.

They are timed as roofs are, in trials of about half a millisecond of which one in twenty is faster than the figure,
for the rate of memory and of the last cache changes within milliseconds. Of the loops for one roof the best counts. The
rates of threads, which run at once, are added up.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
from fairlap.engine.roofs import instructions_for
from fairlap.machine.hardware.processor import DataCache

TRIAL_S, TURN_S = 0.0005, 0.03
_QUANTILE = 0.95  # of the trials, as for roofs

SOURCE = """
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

void trials_of_loop(void (*run)(uint64_t), uint64_t rounds, size_t trials, double *took_s) {
  for (size_t trial = 0; trial < trials; ++trial) {
    double began_s = now_s();
    run(rounds);
    took_s[trial] = now_s() - began_s;
  }
}

typedef void triad_loop(char *, const char *, const char *, size_t, uint64_t, double);

/* Each trial goes over the next of `pieces`, or many times over the only one. */
void trials_of_triad(triad_loop *run, char *a, char *b, char *c, size_t piece, size_t pieces, uint64_t passes,
                     size_t trials, size_t *next, double *took_s) {
  for (size_t trial = 0; trial < trials; ++trial) {
    size_t at = piece * (*next)++;
    *next %= pieces;
    double began_s = now_s();
    run(a + at, b + at, c + at, piece, passes, 0.4);
    took_s[trial] = now_s() - began_s;
  }
}
"""

_REGISTERS = 24
_VECTORS = {  # of a processor with AVX-512: flag, instruction, operations of one
    "fp32": ("avx512f", "vfmadd231ps %zmm30, %zmm31, {}", 32),
    "fp64": ("avx512f", "vfmadd231pd %zmm30, %zmm31, {}", 16),
    "fp16": ("avx512_fp16", "vfmadd231ph %zmm30, %zmm31, {}", 64),
    "bf16": ("avx512_bf16", "vdpbf16ps %zmm30, %zmm31, {}", 64),
    "int8": ("avx512_vnni", "vpdpbusd %zmm30, %zmm31, {}", 128),
}
_TILES = {  # of AMX, in which six tiles of 16 x 64 bytes are sums
    "bf16": ("amx_bf16", "tdpbf16ps %tmm6, %tmm7, {}", 2 * 16 * 16 * 32),
    "int8": ("amx_int8", "tdpbusd %tmm6, %tmm7, {}", 2 * 16 * 16 * 64),
}
_TILE_SUMS = 6
_TILE_CONFIGURATION = """
.section .rodata
.balign 64
tiles: .byte 1
.zero 15
.short 64, 64, 64, 64, 64, 64, 64, 64
.zero 16
.byte 16, 16, 16, 16, 16, 16, 16, 16
.zero 8
.text
"""
_STORES = {"cached": "vmovapd", "streaming": "vmovntpd"}
_TRIADS = [
    (register, size, unrolled) for (register, size), unrolled in product({"ymm": 32, "zmm": 64}.items(), (2, 4, 8))
]
_STEP_BYTES = 64 * 8  # of an array; a multiple of what each triad goes over in a round
_PIECE_BYTES = 2**22  # of an array
_APART_BYTES = 1344  # on top of whole pages, so that no store waits for a load at the same place of another page
_HUGE_PAGE_BYTES = 2**21


def _counting_down(name: str, before: Sequence[str], body: Sequence[str], after: Sequence[str]) -> str:
    """Write a function that runs ``body`` as often as its argument says."""
    return "\n".join((f".globl {name}", f"{name}:", *before, "1:", *body, "dec %rdi", "jnz 1b", *after, "ret", ""))


def _vector_loop(name: str, instruction: str) -> str:
    registers = [f"%zmm{number}" for number in range(_REGISTERS)]
    zeros = [f"vpxorq {each}, {each}, {each}" for each in (*registers, "%zmm30", "%zmm31")]
    return _counting_down(f"loop_{name}", zeros, [instruction.format(each) for each in registers], ["vzeroupper"])


def _tile_loop(name: str, instruction: str) -> str:
    begin = ["ldtilecfg tiles(%rip)", *(f"tilezero %tmm{number}" for number in range(8))]
    products = [instruction.format(f"%tmm{number}") for number in range(_TILE_SUMS)]
    return _counting_down(f"tiles_{name}", begin, products, ["tilerelease"])


def _triad(stores: str, register: str, size: int, unrolled: int) -> str:
    """Write ``(a, b, c, bytes, passes, s)``: for each vector of c a fused multiply-add with b from memory.

    Its addresses have one register each: Intel's processors split an instruction that adds up two.
    """
    body = [
        line
        for number in range(unrolled)
        for line in (
            f"vmovapd {size * number}(%r11), %{register}{number}",
            f"vfmadd213pd {size * number}(%r10), %{register}15, %{register}{number}",
            f"{_STORES[stores]} %{register}{number}, {size * number}(%rax)",
        )
    ]
    moves = [f"add ${size * unrolled}, %{pointer}" for pointer in ("rax", "r10", "r11")]
    name = _triad_name(stores, register, unrolled)
    begin = [f"vbroadcastsd %xmm0, %{register}15", "add %rdi, %rcx"]  # where a ends
    one_pass = ["1:", "mov %rdi, %rax", "mov %rsi, %r10", "mov %rdx, %r11", ".p2align 5", "2:", *body, *moves]
    end = ["cmp %rcx, %rax", "jb 2b", "dec %r8", "jnz 1b", "sfence", "vzeroupper", "ret", ""]
    return "\n".join((f".globl {name}", f"{name}:", *begin, *one_pass, *end))


def _triad_name(stores: str, register: str, unrolled: int) -> str:
    return f"triad_{stores}_{register}_{unrolled}"


def compiled(folder: Path, further_source: str, flags: frozenset[str]) -> ctypes.CDLL:
    texts = [_vector_loop(name, text) for name, (flag, text, _) in _VECTORS.items() if flag in flags]
    tiles = [_tile_loop(name, text) for name, (flag, text, _) in _TILES.items() if flag in flags]
    texts += [_TILE_CONFIGURATION, *tiles] if tiles else []
    if "avx512f" in flags:
        texts += [_triad(stores, *triad) for stores in _STORES for triad in _TRIADS]
    (folder / "loops.s").write_text("".join(texts) + '.section .note.GNU-stack,"",@progbits\n')
    (folder / "trials.c").write_text(SOURCE + further_source)
    library = folder / "loops.so"
    sources = [str(folder / "trials.c"), str(folder / "loops.s")]
    subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", *sources, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


@dataclass
class Loop:
    """``trials(thread, units, count)`` are the seconds that each of its trials takes on this thread."""

    trials: Callable[[int, int, int], np.ndarray[tuple[int], np.dtype[np.float64]]]
    amount: float  # operations or bytes of a unit
    units: int = 1
    rates: list[float] = field(default_factory=list)


@dataclass
class BestOf:
    loops: Sequence[Loop]
    threads: int
    pool: ThreadPoolExecutor

    def __post_init__(self) -> None:
        for loop in self.loops:
            while (took_s := float(np.median(loop.trials(0, loop.units, 5)))) < 0.8 * TRIAL_S:
                loop.units = math.ceil(loop.units * min(50.0, TRIAL_S / max(took_s, 1e-9)))

    def take(self) -> None:
        count = round(TURN_S / TRIAL_S)
        for loop in self.loops:
            took_s = self.pool.map(
                loop.trials, range(self.threads), *([each] * self.threads for each in (loop.units, count))
            )
            loop.rates += np.sum([loop.amount * loop.units / each for each in took_s], axis=0).tolist()

    def best(self) -> float:
        return max(float(np.quantile(loop.rates, _QUANTILE, method="lower")) for loop in self.loops)


def arithmetic_loops(library: ctypes.CDLL, number_type: str, flags: frozenset[str]) -> list[Loop]:
    """All that this processor has."""

    def loop(symbol: str, operations: int) -> Loop:
        def trials(_: int, units: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            took_s = np.empty(count)
            library.trials_of_loop(
                getattr(library, symbol), ctypes.c_uint64(units), ctypes.c_size_t(count), _pointer(took_s)
            )
            return took_s

        return Loop(trials, float(operations))

    kinds = (number_type, "fp32") if number_type == "bf16" else (number_type,)
    found = [loop(f"loop_{kind}", _VECTORS[kind][2] * _REGISTERS) for kind in kinds if _VECTORS[kind][0] in flags]
    if number_type in _TILES and _TILES[number_type][0] in instructions_for(number_type):
        found.append(loop(f"tiles_{number_type}", _TILES[number_type][2] * _TILE_SUMS))
    return found


def triad_sizes(levels: Mapping[str, int], caches: Sequence[DataCache], threads: int, cores: int) -> dict[str, int]:
    """Bytes of each thread's arrays in the middle of a level: above what the level inside holds, far below its own."""
    found, inner = dict(levels), 0.0
    for cache in caches:
        share = cache.size_bytes / max(1, math.ceil(threads * len(cache.cores) / cores))
        if cache.level in levels:
            found[cache.level] = int(math.sqrt(inner * share) if inner else share / 2)
        inner = max(inner, share)
    return found


def triad_loops(library: ctypes.CDLL, bytes_per_thread: int, threads: int, *, in_caches: bool) -> list[Loop]:
    pieces = max(1, round(bytes_per_thread / 3 / _PIECE_BYTES))
    piece = max(1, bytes_per_thread // 3 // pieces // _STEP_BYTES) * _STEP_BYTES
    parts = [_three_arrays(piece * pieces) for _ in range(threads)]
    following = [ctypes.c_size_t(0) for _ in range(threads)]

    def loop(name: str) -> Loop:
        def trials(thread: int, units: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            took_s = np.empty(count)
            places = map(ctypes.c_void_p, parts[thread][1])
            sizes = map(ctypes.c_size_t, (piece, pieces, units, count))
            library.trials_of_triad(
                getattr(library, name), *places, *sizes, ctypes.byref(following[thread]), _pointer(took_s)
            )
            return took_s

        return Loop(trials, 3.0 * piece)

    stores = "cached" if in_caches else "streaming"
    return [loop(_triad_name(stores, register, unrolled)) for register, _, unrolled in _TRIADS]


def _three_arrays(bytes_each: int) -> tuple[mmap.mmap, list[int]]:
    """Allocate three arrays with every page in place, in huge pages where available, and return their addresses."""
    apart = bytes_each + _APART_BYTES
    memory = mmap.mmap(-1, 3 * apart + _HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    content = np.frombuffer(memory, dtype=np.uint8)
    content[:] = 0
    first = content.ctypes.data + -content.ctypes.data % _HUGE_PAGE_BYTES
    return memory, [first + number * apart for number in range(3)]


def _pointer(array: np.ndarray[tuple[int], np.dtype[np.float64]]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
