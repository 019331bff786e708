"""One framework under LoadGen's scenarios, in this process; prints what was found as JSON.

Run by test_loadgen_in_frameworks.py.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np
from fairlap.frameworks.contract import Contestant, Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.fields.load import Scenario
from fairlap.scenarios.calls.timed_inputs import in_memory
from fairlap.scenarios.load.contestant_issue import LoadGenThread, issue_of, output_shapes
from fairlap.scenarios.load.loadgen import run_loadgen
from fairlap.scenarios.load.loadgen_logs import LoggedAnswer, answers_in
from fairlap.scenarios.load.loadgen_messages import LoadGenResult, LoadGenRun

KNOWN = 4  # items whose answers are checked
CALLS = 5


def main(asked: dict[str, Any]) -> dict[str, Any]:
    framework = framework_named(asked["framework"])()
    settings = Settings(1, asked.get("variant", ""))
    found = find(asked["model"])
    spec, precision = found.spec, asked.get("precision", "fp32")
    with tempfile.TemporaryDirectory() as folder:
        weights = shared(draw_weights(spec, seed=1), folder)
        items = [shared(draw_inputs(spec, 1, seed=number), folder) for number in range(KNOWN)]
        work = Workload(spec, found.package, 1, "infer", precision, weights, items[0])
        contestant = framework.prepare(work, settings, lambda _name: nullcontext())
        batch = asked.get("batch", 1)
        batched = contestant
        if batch > 1:
            inputs = gathered(items[:1] * batch)
            batched = framework.prepare(replace(work, batch=batch, inputs=inputs), settings, lambda _: nullcontext())
        thread = LoadGenThread(contestant, batch_call(batched, items, batch))
        issue = issue_of([thread], spec, items, largest_batch=batch)
        alone = [answer(contestant, inputs) for inputs in items]
        service_s = median(timed(lambda: answer(contestant, items[0])) for _ in range(CALLS))

        def run(scenario: Scenario, **parts: Any) -> LoadGenResult:
            of_all = LoadGenRun(
                scenario,
                folder,
                percentile=0.9,
                samples_per_query=max(batch, 2),
                rate_per_s=0.25 / service_s,
                bound_s=30 * service_s + 0.5,
            )
            return run_loadgen(msgspec.structs.replace(of_all, **parts), KNOWN, issue)

        results: dict[str, Any] = {}
        for scenario in asked["scenarios"]:
            began_s = time.perf_counter()
            result = run(scenario, least_s=asked["least_s"])
            results[scenario] = {**msgspec.to_builtins(result), "took_s": time.perf_counter() - began_s}

        run("offline", accuracy=True)
        accuracy = answers_in(folder, output_shapes(spec))
        run("server", least_s=0.0, logged_answers=10)
        while_timed = answers_in(folder, output_shapes(spec))
        wrong = [] if precision != "fp32" else disagreements(work, items, accuracy)
        return {
            "service_s": service_s,
            "results": results,
            "items": sorted(each.item for each in accuracy),
            "wrong": wrong,
            "unlike_alone": max(
                float(np.abs(each.outputs[name] - alone[each.item][name]).max())
                for each in accuracy
                for name in each.outputs
            ),
            "while_timed": [largest_difference(each, accuracy) for each in while_timed],
        }


def largest_difference(timed: LoggedAnswer, accuracy: Sequence[LoggedAnswer]) -> float:
    """Compare with the answer of the run for accuracy, relative to the largest value of each output."""
    same = next(each.outputs for each in accuracy if each.item == timed.item)
    differences = (np.abs(timed.outputs[name] - value).max() / np.abs(value).max() for name, value in same.items())
    return float(max(differences))


def disagreements(work: Workload, items: Sequence[Arrays], accuracy: Sequence[LoggedAnswer]) -> list[str]:
    tolerance = work.spec.tolerance(work.precision)
    found = []
    for each in accuracy:
        reference = reference_answers(replace(work, inputs=items[each.item]))
        errors = [output_errors(name, each.outputs[name], value, tolerance) for name, value in reference.items()]
        found += [str(error) for error in errors if not error.right]
    return found


def batch_call(
    contestant: Contestant, items: Sequence[Arrays], batch: int
) -> Callable[[Sequence[int]], tuple[Contestant, Any]] | None:
    if batch == 1:
        return None

    def call(group: Sequence[int]) -> tuple[Contestant, Any]:
        places = [*group, *[group[-1]] * (batch - len(group))]
        return contestant, contestant.bind(gathered([items[place] for place in places]))()

    return call


def gathered(items: Sequence[Arrays]) -> Arrays:
    return {name: in_memory(np.concatenate([item[name] for item in items])) for name in items[0]}


def answer(contestant: Contestant, inputs: Arrays) -> dict[str, np.ndarray]:
    result = contestant.bind(inputs)()
    if contestant.done is not None:
        contestant.done(result)
    return {name: np.array(array) for name, array in contestant.outputs(result).items()}


def timed(call: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def shared(arrays: Arrays, folder: str) -> Arrays:
    """Read-only and aligned, as a worker is handed them."""
    file = Path(folder) / "arrays.safetensors"
    safetensors.write(file, arrays)
    return {name: in_memory(array) for name, array in safetensors.read(file).items()}


if __name__ == "__main__":
    answer_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    json.dump(main(json.loads(sys.argv[1])), answer_file)
    answer_file.flush()
    os._exit(0)
