"""Many fresh processes of the same work, one after the other: what every rule is tried on."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY

from .work import SAMPLES

_WORK = Path(__file__).with_name("work.py")
_HASH_SEEDS = 2**32


@dataclass(frozen=True, eq=False)
class Recording:
    """Samples in nanoseconds shaped (processes, samples), in the order they were taken; and what a process took."""

    conditions: str
    samples_ns: np.ndarray
    seconds_per_process: float


def record(conditions: str, processes: int, seed: int) -> Recording:
    rng = np.random.default_rng(seed)
    cores = os.sched_getaffinity(0)
    rows = []
    began_s = time.monotonic()
    try:
        os.sched_setaffinity(0, {min(cores)})  # children inherit it; one thread needs one core
        for number in range(processes):
            variables = {**os.environ, "PYTHONHASHSEED": str(rng.integers(_HASH_SEEDS)), "OPENBLAS_NUM_THREADS": "1"}
            if conditions == "controlled":
                variables |= CONTROLLED_MEMORY
            done = subprocess.run([sys.executable, str(_WORK)], env=variables, capture_output=True, check=True)
            rows.append(np.frombuffer(done.stdout, dtype="<f8"))
            if number % 100 == 99:
                print(f"{conditions}: {number + 1} of {processes} processes", file=sys.stderr, flush=True)
    finally:
        os.sched_setaffinity(0, cores)
    samples_ns = np.stack(rows)
    assert samples_ns.shape == (processes, SAMPLES)
    return Recording(conditions, samples_ns, (time.monotonic() - began_s) / processes)
