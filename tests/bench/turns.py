"""How much of the noise of a block's log ratio goes when contestants take turns in rounds.

Each contestant races against itself: blocks in rounds and blocks one after the other alternate, so that both see the
same machine. With ``--bursts`` a neighbour burns a core now and then. With ``--agreement`` onnxruntime and torch race
both ways on every built-in model, to see whether the figures agree: whether a thaw costs time that the unused calls at
the start of a turn do not hide. Prints the tables of docs/explanation/taking-turns.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.race.counted_blocks import work_blocks
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.race.self_test import Trial
from fairlap.request.names import ContestantName, contestant_named
from fairlap.request.work import Work

AGREEMENT = ("onnxruntime", "torch")
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


def log_figures(
    contestants: Sequence[ContestantName], work: Work, blocks: int, *, rounds: int, seed: int
) -> npt.NDArray[np.float64]:
    """Of a short race, shaped (blocks, contestants)."""
    cores = tuple(sorted(os.sched_getaffinity(0)))
    plan = draw_plan(
        tuple(contestants),
        (work,),
        blocks=blocks,
        conditions="controlled",
        threads=len(cores),
        available_cores=cores,
        seed=seed,
        measuring=Measuring(rounds=rounds),
        until_decided=True,
    )
    race = Race(plan)
    race.run()
    [found] = work_blocks(plan, race.processes, "controlled")
    assert found.table is not None, found.why_no_verdict
    order = [found.table.contestants.index(contestant.text) for contestant in contestants]
    return found.table.log_figures[:, order]


def print_noise(model: str, blocks: int) -> None:
    print("| contestant | one after the other | in rounds | share |\n| --- | --- | --- | --- |", flush=True)
    shares = []
    for name in CONTESTANTS:
        pair = Trial(contestant_named(name), Work(model, 8), threads=1, cores=(0,)).pair
        apart: list[float] = []
        in_rounds: list[float] = []
        for part in range(0, blocks, 3):
            for ratios, rounds in ((apart, 1), (in_rounds, 10)):
                logs = log_figures(pair, Work(model, 8), 3, rounds=rounds, seed=part)
                ratios += list(logs[:, 0] - logs[:, 1])
        before, after = float(np.std(apart, ddof=1)), float(np.std(in_rounds, ddof=1))
        shares.append(after / before)
        print(f"| {name} | {100 * before:.1f} % | {100 * after:.1f} % | {shares[-1]:.2f} |", flush=True)
    print(f"\nmedian share: {np.median(shares):.2f}")


def print_agreement(blocks: int) -> None:
    """Medians over blocks; the two ways alternate, three blocks at a time."""
    first, second = (contestant_named(name) for name in AGREEMENT)
    ratio = f"{second.text} over {first.text}"
    print(f"| model | {first.text}, in rounds over apart | {second.text} | {ratio}, apart | in rounds |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    for model in workload_names():
        if model == "callable" or "infer" not in find(model).spec.modes:  # whatever the contestants call, or solve
            continue
        work = Work(model, 1)
        logs: dict[int, list[npt.NDArray[np.float64]]] = {rounds: [] for rounds in (1, 10)}
        for part in range(0, blocks, 3):
            for rounds in (1, 10):
                logs[rounds] += list(log_figures((first, second), work, 3, rounds=rounds, seed=part))
        apart, in_rounds = (np.array(logs[rounds]) for rounds in (1, 10))
        shares = np.exp(np.median(in_rounds, axis=0) - np.median(apart, axis=0))
        ratios = [np.exp(np.median(each[:, 1] - each[:, 0])) for each in (apart, in_rounds)]
        print(f"| {model} | {shares[0]:.3f} | {shares[1]:.3f} | {ratios[0]:.3f} | {ratios[1]:.3f} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--blocks", type=int, default=12)
    options.add_argument("--model", default="convnet", help="of the table of noise")
    options.add_argument("--bursts", action="store_true")
    options.add_argument("--agreement", action="store_true")
    given = options.parse_args()
    with neighbour(bursts=given.bursts):
        if given.agreement:
            print_agreement(given.blocks)
        else:
            print_noise(given.model, given.blocks)


if __name__ == "__main__":
    main()
