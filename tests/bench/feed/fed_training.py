"""What feeding adds to a step of training: each pipeline at its default, beside batches that lie in memory.

One framework in one process on one core, so that no work of a pipeline is hidden on another one; the pipelines take
turns. A step's feeding is what it takes to get the batch, waiting and handing over, and to release it: the pipeline's
threads run then, as they get the core. Of the steps of a turn the lower quartiles are taken, since a neighbour takes
the core during others, and the medians over the turns. Run it with ``make bench-fed-training``.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench_processes import measured_in_processes
from fairlap import quantity_text
from fairlap.data.datasets import drawn_data
from fairlap.data.npy_rows import NpyRows
from fairlap.data.pipeline import Job
from fairlap.data.pipeline_choice import choice_in
from fairlap.frameworks.contract import Contestant, Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.race.equal_work.fed_check import fed_spec
from fairlap.request.work import Work

PIPELINES = {
    "torch": ("fairlap", "dataloader"),
    "tensorflow:graph": ("fairlap", "tfdata"),
    "jax": ("fairlap",),
}
MODELS = {"digits": 32, "convnet": 8}  # with the batch
TURNS = 9
STEPS = {"digits": 100, "convnet": 12}  # of a turn
WARM_UP_STEPS = 6  # more than there are slots: what was filled before the turn does not count
IN_MEMORY = "in memory"

now_ns = time.perf_counter_ns
Step = Callable[[], tuple[int, int]]  # its time, and the part of it that went into feeding, in ns


def in_memory(contestant: Contestant, job: Job) -> Step:
    batches = [
        {name: NpyRows(file).span(number * job.batch, job.batch) for name, file in job.files.items()}
        for number in range(job.samples // job.batch)
    ]
    steps = [contestant.bind(each) for each in batches]
    done, numbers = contestant.done, iter(range(10**9))

    def step() -> tuple[int, int]:
        number = next(numbers) % len(batches)  # the batches stay: some frameworks only point to them
        began_ns = now_ns()
        result = steps[number]()
        if done is not None:
            done(result)
        return now_ns() - began_ns, 0

    return step


def fed(contestant: Contestant, job: Job, options: Mapping[str, str], framework: str) -> Step:
    assert contestant.fed is not None
    pipeline = choice_in(options, framework).opened(job, contestant.fed)
    run, done = contestant.fed.run, contestant.done

    def step() -> tuple[int, int]:
        began_ns = now_ns()
        taken: Any = pipeline.take()
        taken_ns = now_ns()
        result = run(taken)
        if done is not None:
            done(result)
        worked_ns = now_ns()
        pipeline.release()
        ended_ns = now_ns()
        return ended_ns - began_ns, taken_ns - began_ns + ended_ns - worked_ns

    return step


def measured(name: str, model: str) -> dict[str, list[tuple[float, float]]]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    framework_name, _, variant = name.partition(":")
    offered, batch = find(model), MODELS[model]
    spec = offered.spec
    work = Workload(
        *(spec, offered.package, batch, "train", "fp32", draw_weights(spec, 0), draw_inputs(spec, batch, 0)),
        draw_labels(spec, batch, 0),
        spec.training,
    )
    contestant = framework_named(framework_name)().prepare(work, Settings(1, variant), lambda _: nullcontext())
    assert contestant.training is not None
    with tempfile.TemporaryDirectory() as folder:
        data = drawn_data(fed_spec(spec, Work(model, batch, "train")), batch, 0, Path(folder))
        job = Job({each: str(file) for each, file in data.files.items()}, data.samples, batch, seed=0)
        steps = {IN_MEMORY: in_memory(contestant, job)}
        steps |= {each: fed(contestant, job, {"feed": each}, framework_name) for each in PIPELINES[name]}
        found: dict[str, list[tuple[float, float]]] = {each: [] for each in steps}
        for turn in range(TURNS):
            for each in list(steps) if turn % 2 else list(reversed(steps)):
                contestant.training.reset()
                times = [steps[each]() for _ in range(WARM_UP_STEPS + STEPS[model])][WARM_UP_STEPS:]
                whole_ns, feeding_ns = (statistics.quantiles(part, n=4)[0] for part in zip(*times, strict=True))
                found[each].append((whole_ns, feeding_ns))
    return found


def main() -> None:
    print(f"{'framework':<18}{'model':<9}{'pipeline':<12}{'step':>10}{'feeding':>10}{'share':>8}  range over turns")
    for name, model, found in measured_in_processes(PIPELINES, MODELS, width=9):
        for pipeline, turns in found.items():
            print(f"{name:<18}{model:<9}{pipeline:<12}{_figures(turns)}", flush=True)


def _figures(turns: list[tuple[float, float]]) -> str:
    step_ns, feeding_ns = (statistics.median(part) for part in zip(*turns, strict=True))
    shares = [of_feeding / whole for whole, of_feeding in turns]
    figures = f"{quantity_text.duration(step_ns):>10}"
    if feeding_ns:
        figures += f"{quantity_text.duration(feeding_ns):>10}{statistics.median(shares):>8.1%}"
        figures += f"  {min(shares):.1%} to {max(shares):.1%}"
    return figures


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(sys.argv[1], sys.argv[2])))
        sys.stdout.flush()
        os._exit(0)  # pipelines end with the process
    main()
