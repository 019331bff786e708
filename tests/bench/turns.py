"""How much of the noise of a block's log ratio goes when contestants take turns in rounds.

Each contestant races against itself: blocks in rounds and blocks one after the other alternate, so that both see the
same machine. With ``--bursts`` a neighbour burns a core now and then. Prints a table, and the medians of the last lines
of docs/explanation/taking-turns.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from fairlap.race.counted_blocks import work_blocks
from fairlap.race.plan import Measuring, draw_plan
from fairlap.race.race import Race
from fairlap.race.self_test import Trial
from fairlap.request.names import contestant_named
from fairlap.request.work import Work

CONTESTANTS = ("onnxruntime", "torch", "tensorflow:graph", "jax", "openvino")
_BURSTS = """
import random, time
while True:
    until = time.monotonic() + random.uniform(0.2, 1.5)
    while time.monotonic() < until:
        pass
    time.sleep(random.uniform(0.2, 1.5))
"""


@contextmanager
def neighbour(*, bursts: bool) -> Iterator[None]:
    if not bursts:
        yield
        return
    burning = subprocess.Popen([sys.executable, "-c", _BURSTS])
    try:
        yield
    finally:
        burning.kill()
        burning.wait()


def log_ratios(trial: Trial, blocks: int, *, rounds: int, seed: int) -> list[float]:
    plan = draw_plan(
        trial.pair,
        (trial.work,),
        blocks=blocks,
        conditions="controlled",
        threads=trial.threads,
        available_cores=trial.cores,
        seed=seed,
        measuring=Measuring(rounds=rounds),
        until_decided=True,
    )
    race = Race(plan)
    race.run()
    [found] = work_blocks(plan, race.processes, "controlled")
    assert found.table is not None, found.why_no_verdict
    logs = found.table.log_figures
    return [float(ratio) for ratio in logs[:, 0] - logs[:, 1]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--blocks", type=int, default=12)
    options.add_argument("--model", default="convnet")
    options.add_argument("--bursts", action="store_true")
    given = options.parse_args()
    cores = tuple(sorted(os.sched_getaffinity(0)))
    print("| contestant | one after the other | in rounds | share |\n| --- | --- | --- | --- |", flush=True)
    shares = []
    with neighbour(bursts=given.bursts):
        for name in CONTESTANTS:
            trial = Trial(contestant_named(name), Work(given.model, 8), threads=len(cores), cores=cores)
            apart: list[float] = []
            in_rounds: list[float] = []
            for part in range(0, given.blocks, 3):
                apart += log_ratios(trial, 3, rounds=1, seed=part)
                in_rounds += log_ratios(trial, 3, rounds=10, seed=part + 1)
            before, after = float(np.std(apart, ddof=1)), float(np.std(in_rounds, ddof=1))
            shares.append(after / before)
            print(f"| {name} | {100 * before:.1f} % | {100 * after:.1f} % | {shares[-1]:.2f} |", flush=True)
    print(f"\nmedian share: {np.median(shares):.2f}")


if __name__ == "__main__":
    main()
