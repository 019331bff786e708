"""Races of honest contestants: none may be disqualified, nor be named as one that computes elsewhere.

python -m tests.trust.honest                      200 races over all models
python -m tests.trust.honest --neighbours 2       beside programs that burn as many cores

Each race has a model and two contestants that are drawn, for one block with all checks of a race. Exit status 1 if one
is accused.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.process_result import ProcessResult

CONTESTANTS = (
    "torch",
    "torch:compile",
    "tensorflow:graph",
    "tensorflow:xla",
    "jax",
    "onnxruntime",
    "openvino",
    "litert",
)
ACCUSATIONS = {"W_OTHER_PROCESSES", "W_LITTLE_CPU_TIME", "W_MORE_THREADS"}
_MODEL_OF_THE_CALLER = "callable"


@dataclass
class Count:
    races: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burning:
            each.kill()
            each.wait()


def raced(model: str, contestants: Sequence[str], seed: int, seconds: float) -> list[ProcessResult]:
    plan = draw_plan(
        Contestants(",".join(contestants)),
        (Work(model, 1),),
        blocks=1,
        conditions="controlled",
        threads=len(os.sched_getaffinity(0)),
        available_cores=tuple(sorted(os.sched_getaffinity(0))),
        seed=seed,
        measuring=Measuring(seconds=seconds),
    )
    race = Race(plan)
    race.run()
    return list(race.processes)


def accusation(process: ProcessResult) -> str:
    """Its code; empty for a contestant that is taken for honest."""
    if process.outcome in ("finished", "unsupported", "not_installed"):
        return next((notice.code for notice in process.warnings if notice.code in ACCUSATIONS), "")
    return process.code


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--races", type=int, default=200)
    options.add_argument("--seconds", type=float, default=0.1, help="measured of each contestant")
    options.add_argument("--neighbours", type=int, default=0)
    given = options.parse_args()
    named = [name for name in workload_names() if name != _MODEL_OF_THE_CALLER]
    models = [name for name in named if "infer" in find(name).spec.modes]
    draw = random.Random(0)
    counts = {model: Count() for model in models}
    accused = 0
    with neighbours(given.neighbours):
        for number in range(given.races):
            model, pair = models[number % len(models)], draw.sample(CONTESTANTS, 2)
            counts[model].races += 1
            for process in raced(model, pair, number, given.seconds):
                counts[model].outcomes[process.outcome] += 1
                if code := accusation(process):
                    accused += 1
                    print(f"{process.contestant} on {model}: {code}: {process.message}", file=sys.stderr, flush=True)
    print("| model | races | processes |\n| --- | --- | --- |")
    for model, count in counts.items():
        print(f"| {model} | {count.races} | {', '.join(f'{n} {name}' for name, n in count.outcomes.most_common())} |")
    print(f"\n{accused} of {sum(sum(each.outcomes.values()) for each in counts.values())} processes were accused.")
    return min(accused, 1)


if __name__ == "__main__":
    sys.exit(main())
