"""How many float32 operations this machine does in a second on all cores: an upper bound for what contestants can do.

Measured by the engine in registers and with a matrix product, of which the higher counts. The first is the limit of
the cores and suffers little from other programs; the second is higher where a library uses a unit that has no public
instructions, as on Apple's processors. A bound that is too low would accuse honest contestants.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fairlap.engine.roofs import Team, arithmetic_trials

_SIZE = 1024
_TRIES = 3
_NATIVE_S = 0.1
_measured = 0.0


def operations_per_second(*, again: bool = False) -> float:
    """Return the highest figure measured by this process so far; ``again`` measures once more."""
    global _measured
    if again or not _measured:
        _measured = max(_measured, _product(), _native())
    return _measured


def _native() -> float:
    trials = arithmetic_trials("fp32", Team(os.cpu_count() or 1))
    trials.take(_NATIVE_S)
    return trials.roof().value


def _product() -> float:
    """Time a product per core, side by side, so that a library that uses one thread uses all cores, too.

    The time is the CPU time of this process, which other programs on the cores do not lengthen.
    """
    cores = os.cpu_count() or 1
    left = np.random.default_rng(0).standard_normal((_SIZE, _SIZE), dtype=np.float32)
    out = [np.empty_like(left) for _ in range(cores)]
    shortest_s = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(_TRIES):
            began_s, cpu_began_s = time.perf_counter(), time.process_time()
            list(pool.map(lambda to: np.matmul(left, left, out=to), out))
            took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_began_s
            shortest_s = min(shortest_s, took_s, cpu_s / cores or took_s)
    return 2.0 * _SIZE**3 * cores / shortest_s
