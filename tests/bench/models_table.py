"""Which model runs in which framework, and how far each output is from float64.

    python tests/bench/models_table.py > table.md
    python tests/bench/models_table.py --on paddle,mxnet --models mlp,convnet

One process for each; nothing is timed for comparison. The table in docs/reference/models.md has the largest errors.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from fairlap.models.names import workload_names
from fairlap.models.registry import find
from fairlap.race.equal_work.answers import PEER_GRADIENT
from fairlap.race.planning.plan import Measuring
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.progress import Lines
from fairlap.race.race import Race
from fairlap.request.names import Contestants
from fairlap.request.work import Mode, Work
from fairlap.scenarios.process_result import ProcessResult

CONTESTANTS = "torch,torch:compile,jax,tensorflow,tensorflow:graph,tensorflow:xla,onnxruntime,openvino,litert"
NO_FRAMEWORK = {"callable"}  # a model of whatever is handed in


def processes_of(model: str, mode: Mode, contestants: str) -> dict[str, ProcessResult]:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    spec = find(model).spec
    plan = draw_plan(
        Contestants(contestants),
        (Work(model, spec.default_batch, mode),),
        blocks=1,
        conditions="as-found",
        threads=len(cores),
        available_cores=cores,
        seed=1,
        measuring=Measuring(seconds=0.05),
    )
    race = Race(plan, Lines(plan))
    race.run()
    return {process.contestant: process for process in race.processes}


def cell(process: ProcessResult) -> str:
    if process.outcome == "finished":
        return f"{max(error.distance for error in process.errors if not error.what.startswith(PEER_GRADIENT)):.0e}"
    return "–" if process.outcome == "unsupported" else f"**{process.outcome}** ({process.code})"


def reasons(model: str, mode: Mode, processes: Iterable[ProcessResult]) -> list[str]:
    """Why a cell has no error, for what is neither finished nor unsupported."""
    return [
        f"- {model} {mode} in {process.contestant}: {process.message} [{process.code}]"
        for process in processes
        if process.outcome not in ("finished", "unsupported")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Which model runs in which framework, and with what error.")
    parser.add_argument("--on", default=CONTESTANTS, help="contestants, separated by commas")
    inferring = [name for name in workload_names() if "infer" in find(name).spec.modes]
    parser.add_argument("--models", default=",".join(name for name in inferring if name not in NO_FRAMEWORK))
    options = parser.parse_args()
    names = [name.text for name in Contestants(options.on)]
    print(f"| model | parameters | mode | {' | '.join(names)} |")
    print("| --- " * (len(names) + 3) + "|", flush=True)
    lost = []
    for model in options.models.split(","):
        spec = find(model).spec
        for mode in spec.modes:
            if mode == "train":  # has a table in docs/how-to/race-training.md
                continue
            processes = processes_of(model, mode, options.on)
            cells = " | ".join(cell(processes[name]) for name in names)
            print(f"| {model} | {spec.parameters:,} | {mode} | {cells} |", flush=True)
            lost += reasons(model, mode, processes.values())
    if lost:
        print("\n" + "\n".join(lost))


if __name__ == "__main__":
    main()
