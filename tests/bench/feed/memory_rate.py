"""How fast 4 MiB batches are gathered from memory, compared with memcpy of the same bytes by as many threads."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time

import numpy as np
from fairlap.engine import Feeder

BATCH_BYTES = 4 << 20
SAMPLE_BYTES = 256 << 10
SOURCE_BYTES = 512 << 20
SLOTS = 4
TURNS = 12
SECONDS = 0.4
THREADS = len(os.sched_getaffinity(0))

_libc = ctypes.CDLL(None)  # through ctypes memcpy runs without the interpreter's lock
_libc.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_libc.memcpy.restype = None


def memcpy_rate(source: np.ndarray, target: np.ndarray, at_once: int) -> float:
    """Every thread copies batches of its own part of the source into slots of its own, as fast as it can."""
    copied = [0] * THREADS
    until = time.perf_counter() + SECONDS

    def copy(thread: int) -> None:
        part = SOURCE_BYTES // THREADS
        first, slots = source.ctypes.data + thread * part, target.ctypes.data + thread * SLOTS * BATCH_BYTES
        batches = part // BATCH_BYTES
        number = 0
        while time.perf_counter() < until:
            to, of = slots + number % SLOTS * BATCH_BYTES, first + number % batches * BATCH_BYTES
            for offset in range(0, BATCH_BYTES, at_once):
                _libc.memcpy(to + offset, of + offset, at_once)
            number += 1
        copied[thread] = number

    began = time.perf_counter()
    threads = [threading.Thread(target=copy, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(copied) * BATCH_BYTES / (time.perf_counter() - began)


def feeder_rate(source: np.ndarray, seed: int | None) -> float:
    with Feeder(
        source, batch=BATCH_BYTES // SAMPLE_BYTES, slots=SLOTS * THREADS, threads=THREADS, seed=seed, epochs=None
    ) as feeder:
        for _ in range(SLOTS * THREADS):  # those that were filled before the clock ran
            _released(feeder)
        batches = 0
        began = time.perf_counter()
        while time.perf_counter() - began < SECONDS:
            _released(feeder)
            batches += 1
        return batches * BATCH_BYTES / (time.perf_counter() - began)


def _released(feeder: Feeder) -> None:
    batch = feeder.next()
    assert batch is not None
    batch.release()


def main() -> None:
    source = np.ones((SOURCE_BYTES // SAMPLE_BYTES, SAMPLE_BYTES), np.uint8)
    target = np.ones(THREADS * SLOTS * BATCH_BYTES, np.uint8)
    seed = 1 if sys.argv[1] == "shuffled" else None
    rates: dict[str, list[float]] = {"feeder": [], "memcpy": []}
    for _ in range(TURNS):
        # A memcpy of 4 MiB goes past the caches and one of a sample does not; the machine's rate is the better one.
        rates["memcpy"].append(max(memcpy_rate(source, target, at_once) for at_once in (BATCH_BYTES, SAMPLE_BYTES)))
        rates["feeder"].append(feeder_rate(source, seed))
    print(json.dumps(rates))


main()
