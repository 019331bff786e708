"""Identical contestants that train to a score: how often two of them are called different by their time to it.

python -m tests.trust.time_to_score               10 races of five identical contestants, 100 pairs
python -m tests.trust.time_to_score --races 40    400 pairs

Each pair is judged alone, at 5 %, as in a race of two. The pairs of a race share blocks, so their mistakes come in
clusters, and as often on average as those of separate races. Exit status 1 if more are called different than 5 %
allow.
"""

from __future__ import annotations

import argparse
import os
import sys

import msgspec
from fairlap import verdict
from fairlap.models.registry import find
from fairlap.race.counted_blocks import work_blocks
from fairlap.race.equal_work.learning_data import data_to_learn
from fairlap.race.plan import DATA_SEEDS_TO_A_SCORE, Measuring, draw_plan
from fairlap.race.race import Race
from fairlap.request.names import contestant_named
from fairlap.request.race_request import MOST_EPOCHS_BY_DEFAULT
from fairlap.request.work import Work

from .identical_pairs import IdenticalPairs

CONTESTANTS = 5
BLOCKS = 6


def raced(model: str, contestant: str, score: float, seed: int) -> verdict.BlockTable:
    found, name = find(model), contestant_named(contestant)
    data, spec = data_to_learn(found, "", 1.0, lambda _: None)
    work = Work(model, spec.default_batch, "train", training=spec.training, train_on=data)
    cores = tuple(sorted(os.sched_getaffinity(0)))
    plan = draw_plan(
        tuple(msgspec.structs.replace(name, text=f"{contestant} ({number})") for number in range(CONTESTANTS)),
        (work,),
        blocks=BLOCKS,
        conditions="controlled",
        threads=len(cores),
        available_cores=cores,
        seed=seed,
        data_seeds=DATA_SEEDS_TO_A_SCORE,
        measuring=Measuring(seconds=0.05),
        to_score=score,
        most_epochs=MOST_EPOCHS_BY_DEFAULT,
    )
    race = Race(plan)
    race.run()
    [blocks] = work_blocks(plan, race.processes, "controlled")
    assert blocks.table is not None, blocks.why_no_verdict
    assert blocks.metric == verdict.TIME_TO_SCORE, "not all of them reached the score"
    return blocks.table


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--races", type=int, default=10)
    options.add_argument("--model", default="digits")
    options.add_argument("--on", default="jax")
    options.add_argument("--score", type=float, default=0.9)
    given = options.parse_args()
    found = IdenticalPairs()
    for seed in range(given.races):
        found.count(seed, raced(given.model, given.on, given.score, seed))
    return found.conclude()


if __name__ == "__main__":
    sys.exit(main())
