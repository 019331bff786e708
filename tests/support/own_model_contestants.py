"""Contestants on a user's model that was opened: their gradients, or where their steps of training end.

    python tests/support/own_model_contestants.py FOLDER TRAINING.json OUT CONTESTANT...

leaves a file for each contestant and mode in OUT, with what a race would compare.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fairlap.frameworks.contract import Contestant, Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.sources.bundle import bundle_in, inputs_file, weights_file
from fairlap.models.spec import BATCH_LABELS, LABELS
from fairlap.models.training.reference import LOSS
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Mode

STEPS = ("inputs", "changed", "inputs")


def answers_of(
    folder: Path, training: Training, out: Path, *contestants: str, modes: tuple[Mode, ...] = ("grad", "train")
) -> dict[tuple[str, str], Arrays]:
    """By contestant and mode, from one process for all of them."""
    file = out / "training.json"
    file.write_bytes(msgspec.json.encode(training))
    called: list[str | Path] = [sys.executable, __file__, folder, file, out, ",".join(modes), *contestants]
    done = subprocess.run(called, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return {(each, mode): safetensors.read(_file(out, each, mode)) for each in contestants for mode in modes}


def _file(out: Path, contestant: str, mode: str) -> Path:
    return out / f"{contestant.replace(':', '-')}-{mode}.safetensors"


def workload(folder: Path, mode: Mode, training: Training, which: str = "inputs") -> Workload:
    bundle, arrays = bundle_in(folder), dict(safetensors.read(inputs_file(folder, which)))
    of_loss, of_batch = arrays.pop(LABELS, None), arrays.pop(BATCH_LABELS, None)
    labels, trains = (of_batch, training) if mode == "train" else (of_loss, None)
    weights = safetensors.read(weights_file(folder))
    return Workload(bundle.spec, str(folder), bundle.batch, mode, "fp32", weights, arrays, labels, trains)


def answer(work: Workload, made: Contestant, batches: list[Workload]) -> Arrays:
    if work.mode == "grad":
        answered = made.bind(work.inputs)()
        return made.outputs(answered if made.done is None else made.done(answered))
    assert made.training is not None
    made.training.reset()
    result: Any = None
    for each in batches:
        labelled = each.inputs if each.labels is None else {**each.inputs, LABELS: each.labels}
        result = made.bind(labelled)()
        if made.done is not None:
            made.done(result)
    return {**made.training.read(), LOSS: made.outputs(result)[LOSS]}


def main(folder: Path, training: Training, out: Path, modes: list[Mode], contestants: list[str]) -> None:
    for text in contestants:
        name = contestant_named(text)
        settings = Settings(1, name.variant)
        os.environ.update(framework_named(name.framework).environment_for(settings))
    for text in contestants:
        name = contestant_named(text)
        for mode in modes:
            work = workload(folder, mode, training)
            made = framework_named(name.framework)().prepare(work, Settings(1, name.variant), lambda _: nullcontext())
            found = answer(work, made, [workload(folder, mode, training, which) for which in STEPS])
            arrays = {key: np.asarray(array, np.float32) for key, array in found.items()}
            safetensors.write(_file(out, text, mode), arrays)


if __name__ == "__main__":
    where, settings, into, asked, *rest = sys.argv[1:]
    asked_training = msgspec.json.decode(Path(settings).read_bytes(), type=Training)
    main(Path(where), asked_training, Path(into), asked.split(","), rest)  # type: ignore[arg-type]
