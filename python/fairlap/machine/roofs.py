"""What this machine can do at most: operations per second by number type, and bytes per second by level of memory.

Measured with NumPy, by the CPU time of this process, which other programs on the cores do not lengthen. Figures of one
thread are multiplied by the threads; what threads share, such as main memory, may be slower than that.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

import msgspec

from fairlap.machine.atomic_files import write_atomically
from fairlap.machine.facts import machine_facts
from fairlap.machine.root import THIS_MACHINE, Root, kilobytes
from fairlap.machine.user_folders import user_cache

_TRIES = 5
_GEMM_ROWS = 768
_LARGEST_ARRAY_BYTES = 64 * 2**20
_BYTES_OF_A_TRIAD = 5  # elements moved for each result, in NumPy's two passes


class Roof(msgspec.Struct, frozen=True):
    """One measured limit, with the range of its tries."""

    value: float  # operations per second, or bytes per second
    low: float
    high: float


class Roofs(msgspec.Struct, frozen=True):
    threads: int
    operations_per_s: dict[str, Roof]  # by number type: fp32, fp64, bf16, int8; a multiply-add counts as two
    bytes_per_s: dict[str, Roof]  # by level: L1, L2, L3, memory
    cache_bytes: dict[str, int]
    instructions: dict[str, str]  # that each number type used
    measured_at: str  # in UTC, ISO 8601


def roofs_of(threads: int, *, again: bool = False) -> Roofs:
    """Those measured before on this machine, unless ``again``; measuring takes about a second."""
    facts = machine_facts()
    kind = msgspec.json.encode([facts.get("cpu model"), facts.get("cores"), threads, os.cpu_count()])
    file = user_cache() / f"roofs-{hashlib.sha256(kind).hexdigest()[:16]}.json"
    if not again:
        try:
            return msgspec.json.decode(file.read_bytes(), type=Roofs)
        except (OSError, msgspec.MsgspecError):
            pass
    measured = _measured(threads)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, msgspec.json.encode(measured))
    except OSError:
        pass  # measured again next time
    return measured


def _measured(threads: int) -> Roofs:
    caches = _cache_bytes(THIS_MACHINE)
    levels = {level: size // 2 for level, size in caches.items() if size // 2 <= _LARGEST_ARRAY_BYTES}
    levels["memory"] = min(4 * max(caches.values(), default=2**25), 4 * _LARGEST_ARRAY_BYTES)
    return Roofs(
        threads,
        {name: _times(threads, _of_product(name)) for name in ("fp32", "fp64")},
        {level: _times(threads, _of_triad(size)) for level, size in levels.items()},
        caches,
        dict.fromkeys(("fp32", "fp64"), "those of NumPy's library"),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _times(threads: int, rates: list[float]) -> Roof:
    return Roof(*(threads * each for each in (max(rates), min(rates), max(rates))))


def _of_product(number_type: str) -> list[float]:
    import numpy as np

    kind = {"fp32": np.float32, "fp64": np.float64}[number_type]
    left = np.random.default_rng(0).standard_normal((_GEMM_ROWS, _GEMM_ROWS)).astype(kind)
    out = np.empty_like(left)
    return _rates(lambda: np.matmul(left, left, out=out), 2.0 * _GEMM_ROWS**3)


def _of_triad(working_set_bytes: int) -> list[float]:
    import numpy as np

    left, right, out = (np.ones(max(working_set_bytes // 12, 64), np.float32) for _ in range(3))

    def triad() -> None:
        np.multiply(right, np.float32(3), out=out)
        np.add(left, out, out=out)

    return _rates(triad, float(_BYTES_OF_A_TRIAD * left.nbytes))


def _rates(call: Callable[[], object], amount: float) -> list[float]:
    """Per second of one core's time, of calls that take a millisecond or more together."""
    began_s = time.perf_counter()
    call()
    repeats = max(1, round(1e-3 / max(time.perf_counter() - began_s, 1e-7)))
    found = []
    for _ in range(_TRIES):
        began_s = time.process_time()
        for _ in range(repeats):
            call()
        found.append(repeats * amount / max(time.process_time() - began_s, 1e-6))
    return found


@cache
def _cache_bytes(root: Root) -> dict[str, int]:
    """Of the first core's caches that hold data."""
    found = {}
    folder = "sys/devices/system/cpu/cpu0/cache"
    for name in root.names(folder):
        size = kilobytes(root.text(f"{folder}/{name}/size"))
        if name.startswith("index") and size and root.text(f"{folder}/{name}/type") != "Instruction":
            found[f"L{root.text(f'{folder}/{name}/level')}"] = size * 1024
    return dict(sorted(found.items()))
