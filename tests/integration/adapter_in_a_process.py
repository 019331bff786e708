"""One adapter on one model, in this process, for each that is asked; prints what was found. Run by test_adapters.py."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.checks.gradient_check import gradient_disagreements, slopes
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights, rounded_to_bfloat16
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload

BATCH = 2


def main(asked: dict[str, Any]) -> dict[str, Any]:
    framework = framework_named(asked["framework"])()
    phases: list[str] = []

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        phases.append(name)
        yield

    work = _workload(asked)
    wanted = Settings(asked["threads"], asked["variant"], asked.get("device", "cpu"), asked.get("options", {}))
    try:
        contestant = framework.prepare(work, wanted, phase)
    except Unsupported as refused:
        return {"unsupported": str(refused), "phases": phases}

    def answer(call: Any) -> dict[str, Any]:
        result = call()
        if contestant.done is not None:
            contestant.done(result)
        return contestant.outputs(result)

    call = contestant.bind(work.inputs)
    before = answer(call)
    changed = answer(contestant.bind(_shared(draw_inputs(work.spec, BATCH, seed=3))))
    again = answer(call)  # the first binding must not have been hurt by the second
    tolerance = work.spec.tolerances[work.precision]
    reference = reference_answers(work)
    errors = [output_errors(name, before[name], value, tolerance) for name, value in reference.items()]
    found = {
        "phases": phases,
        "version": framework.version(),
        "in_force": dict(contestant.in_force),
        "types": sorted({array.dtype.name for array in before.values()}),
        "wrong": [str(error) for error in errors if not error.right],
        "changed": all(not np.array_equal(before[name], changed[name]) for name in reference),
        "again": all(np.allclose(before[name], again[name], rtol=1e-3, atol=1e-5) for name in before),
        "weights": _compared(work, contestant.weights()),
    }
    if contestant.deal is not None:
        contestant.deal()
        dealt = answer(contestant.bind(work.inputs))
        found["dealt"] = all(np.allclose(before[name], dealt[name], rtol=1e-3, atol=1e-5) for name in before)
        found["weights_dealt"] = _compared(work, contestant.weights())
    if work.mode == "grad":
        gradients = {name.removeprefix("grad/"): array for name, array in before.items() if name != "loss"}
        found["gradients"] = sorted(gradients)
        found["disagreements"] = gradient_disagreements(work, gradients, [slopes(work)])
    return found


def _workload(asked: dict[str, Any]) -> Workload:
    """Make the model's work, or the same with another loss or a weight held fixed."""
    found = find(asked["model"])
    weights = tuple(replace(each, trained=each.name != asked.get("fixed")) for each in found.spec.weights)
    spec = replace(found.spec, weights=weights, loss=asked.get("loss", found.spec.loss))
    labels = draw_labels(spec, BATCH, seed=2)
    arrays, inputs = _shared(draw_weights(spec, seed=1)), _shared(draw_inputs(spec, BATCH, seed=2))
    return Workload(spec, found.package, BATCH, asked["mode"], asked["precision"], arrays, inputs, labels)


def _shared(arrays: Arrays) -> Arrays:
    """Read-only and aligned, as a worker is handed them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arrays.safetensors"
        safetensors.write(file, arrays)
        return dict(safetensors.read(file))


def _compared(work: Workload, held: Arrays) -> str:
    if not held:
        return "unknown"
    given = work.weights
    if work.precision == "bf16":
        given = {name: rounded_to_bfloat16(array) for name, array in given.items()}
    same = held.keys() == given.keys() and all(np.array_equal(held[name], given[name]) for name in given)
    return "equal" if same else "different"


if __name__ == "__main__":
    answer_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    json.dump([main(asked) for asked in json.loads(sys.argv[1])], answer_file)
    answer_file.flush()
    os._exit(0)
