"""Which model runs in which framework, and how far each answer lies from float64.

    python tests/bench/models_table.py > table.md

One process for each; nothing is timed for comparison. The table in docs/models.md comes from here.
"""

from __future__ import annotations

import os

from fairlap.race.laps import Lap
from fairlap.race.naming import contestants_named
from fairlap.race.plan import Measuring, Work, draw_plan
from fairlap.race.progress import Lines
from fairlap.race.race import Race
from fairlap.workloads.registry import find, workload_names
from fairlap.workloads.spec import Mode

CONTESTANTS = (
    *("torch", "torch:compile", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla"),
    *("onnxruntime", "openvino", "litert"),
)


def laps_of(model: str, mode: Mode) -> dict[str, Lap]:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    spec = find(model).spec
    plan = draw_plan(
        contestants_named(",".join(CONTESTANTS)),
        (Work(model, spec.default_batch, mode),),
        blocks=1,
        conditions="as-found",
        threads=len(cores),
        available_cores=cores,
        seed=1,
        measuring=Measuring(seconds=0.05),
    )
    race = Race(plan, Lines())
    race.run()
    return {lap.contestant: lap for lap in race.laps}


def cell(lap: Lap) -> str:
    if lap.outcome == "finished":
        return f"{max(error.relative for error in lap.errors):.0e}"
    return "–" if lap.outcome == "unsupported" else f"**{lap.outcome}**"


def main() -> None:
    print(f"| model | parameters | mode | {' | '.join(CONTESTANTS)} |")
    print("| --- " * (len(CONTESTANTS) + 3) + "|")
    for model in workload_names():
        spec = find(model).spec
        for mode in spec.modes:
            laps = laps_of(model, mode)
            cells = " | ".join(cell(laps[name]) for name in CONTESTANTS)
            print(f"| {model} | {spec.parameters:,} | {mode} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
