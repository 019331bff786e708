"""Record runs in which nothing changes: three contestants in blocks, run after run, on this machine.

``python -m tests.trust.history.recording --runs 300 --out tests/trust/history/noise.json``
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from .process import WORKS

NOISE = Path(__file__).with_name("noise.json")
_BLOCKS = 6


def median_ns(work: str) -> float:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": str(random.randrange(2**32))}
    command = [sys.executable, str(Path(__file__).with_name("process.py")), work]
    return float(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)


def recorded_run() -> dict[str, object]:
    """Measure the median of every process, by contestant; the order within a block is drawn."""
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    found: dict[str, list[float]] = {work: [] for work in WORKS}
    for _ in range(_BLOCKS):
        for work in random.sample(list(WORKS), len(WORKS)):
            found[work].append(round(median_ns(work)))
    return {"began_at": began, "load": round(os.getloadavg()[0], 1), "ns": found}


def recorded(most_load: float = math.inf) -> dict[str, np.ndarray]:
    """Read the median over each run's blocks, in the order of the runs, without those at a higher load average."""
    runs = [run for run in json.loads(NOISE.read_text()) if run["load"] <= most_load]
    return {work: np.array([np.median(run["ns"][work]) for run in runs]) for work in WORKS}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=300)
    options.add_argument("--out", type=Path, required=True)
    wanted = options.parse_args()
    runs: list[dict[str, object]] = []
    while len(runs) < wanted.runs:
        runs.append(recorded_run())
        lines = ",\n".join(json.dumps(run) for run in runs)
        wanted.out.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
