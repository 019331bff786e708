"""The real frameworks train on from a state as if they had never stopped: weights, momenta and the schedule."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fairlap.data.labelled.built_in import labelled_set
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named
from fairlap.launch.environments import environments_folder
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, hash_of
from fairlap.models.spec import LABELS
from fairlap.models.training.reference import STEP, WEIGHT
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.request.fields.source import Source
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Work
from fairlap.scenarios.learning.training_messages import Epoch, Restore
from fairlap.worker.protocol import Prepare
from framework_python import python_with, skip_unless_available
from learning_sources import SUPPORT
from machine_marks import needs_package

pytestmark = [pytest.mark.timeout(600), needs_package("sklearn"), pytest.mark.slow]

BATCH, ITEMS = 16, 64
OWN_BATCH = 4  # of the models in tests/support
EPOCHS = 3
TRAININGS = {
    "sgd": Training(Sgd(lr=0.05, momentum=0.9, decay=0.0005)),
    "adamw": Training(AdamW(lr=0.01), Schedule("cosine", warmup=3, steps=EPOCHS * ITEMS // BATCH)),
}
OWN_TRAINING = Training(AdamW(lr=0.01), Schedule("cosine", warmup=3, steps=EPOCHS * ITEMS // OWN_BATCH))
CASES = [
    *(pytest.param(name, training) for name in ("torch", "jax", "tensorflow:graph") for training in TRAININGS),
    *(
        pytest.param(name, "adamw", marks=pytest.mark.thorough)
        for name in ("torch:compile", "tensorflow", "tensorflow:xla")
    ),
    *(
        pytest.param(name, training, marks=pytest.mark.heavy_environments)
        for name, training in (("paddle", "sgd"), ("paddle", "adamw"), ("paddle:static", "adamw"))
    ),
]


@contextmanager
def prepared(name: str, materials: Materials) -> Iterator[WorkerProcess]:
    contestant = contestant_named(name)
    framework, work = framework_named(contestant.framework), materials.work
    settings = Settings(1, contestant.variant)
    inputs = str(materials.inputs_file("inputs"))
    request = Prepare(
        framework=contestant.framework,
        workload=materials.package,
        batch=work.batch,
        threads=1,
        weights=str(materials.weights_file),
        inputs=inputs,
        changed=str(materials.inputs_file("changed")),
        unseen=tuple(str(materials.inputs_file(which)) for which in UNSEEN),
        labels=inputs,
        mode="train",
        training=work.training,
        variant=contestant.variant,
    )
    environment = {**os.environ, **framework.environment_for(settings)}
    with python_with(name) as python, WorkerProcess(python_worker(python), environment=environment) as worker:
        worker.prepare(request, within_s=300.0)
        yield worker
        worker.quit()


def train(worker: WorkerProcess, folder: Path, number: int) -> Arrays:
    file = folder / f"state-{number}-{worker.pid}.safetensors"
    worker.ask(Epoch(number, str(folder / "items"), str(folder / f"order-{number}"), str(file)), within_s=300.0)
    return safetensors.read(file)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the items, and the order of each epoch."""
    monkeypatch.setenv("FAIRLAP_ENVS", str(environments_folder()))  # which are not made again
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    found = labelled_set("digits")
    safetensors.write(tmp_path / "items", {"image": found.inputs["image"][:ITEMS], LABELS: found.labels[:ITEMS]})
    for number in range(EPOCHS):
        order = np.random.default_rng(number).permutation(ITEMS)
        safetensors.write(tmp_path / f"order-{number}", {"order": order.astype(np.int64)})
    return tmp_path


@pytest.mark.parametrize(("name", "training"), CASES)
def test_three_epochs_end_where_one_and_two_more_in_another_process_do(name: str, training: str, folder: Path) -> None:
    skip_unless_available(name)
    require_training_goes_on(
        name, materials_for(Work("digits", BATCH, "train", training=TRAININGS[training]), 0), folder
    )


OWN = [
    ("own_nets:normalised", ("torch", "torch:compile")),
    ("own_nets:transformer", ("torch", "jax", "tensorflow:graph")),
    ("own_keras_nets:normalised", ("torch", "jax", "tensorflow:graph")),
    ("own_jax_nets:normalised", ("jax", "tensorflow:graph")),
]


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, names in OWN for name in names])
def test_so_they_do_for_a_model_of_one_s_own(
    model: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "onnxscript", "jax", "optax", "tensorflow", "keras"):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT), prepend=os.pathsep)
    source = Source(model, model, str(SUPPORT), loss="cross_entropy")
    work = Work(model, OWN_BATCH, "train", source=source, training=OWN_TRAINING)
    materials = materials_for(work, 0)
    [tensor], rng = materials.spec.inputs, np.random.default_rng(0)
    labels, shape = materials.workload("inputs").labels, (ITEMS, *tensor.sized(OWN_BATCH)[1:])
    assert labels is not None
    drawn = rng.standard_normal(shape) if tensor.dtype == "float32" else rng.integers(0, 20, shape)
    classes = rng.integers(0, 10, (ITEMS, *labels.shape[1:])).astype(np.int32)
    safetensors.write(folder / "items", {tensor.name: drawn.astype(tensor.dtype), LABELS: classes})
    require_training_goes_on(name, materials, folder)


def require_training_goes_on(name: str, materials: Materials, folder: Path) -> None:
    with prepared(name, materials) as worker:
        after = [train(worker, folder, number) for number in range(EPOCHS)]
    with prepared(name, materials) as worker:
        train(worker, folder, 2)  # what it did before the state was restored leaves no trace
        safetensors.write(folder / "kept", after[0])
        worker.ask(Restore(str(folder / "kept"), str(folder / "back")), within_s=300.0)
        assert hash_of(safetensors.read(folder / "back")) == hash_of(after[0])
        second, third = train(worker, folder, 1), train(worker, folder, 2)
    kinds = {name.partition("/")[0] for name in third}
    assert kinds == {
        "weight",
        STEP,
        *(["buffer"] if materials.work.training == TRAININGS["sgd"] else ["mean", "square"]),
    }
    trained = {WEIGHT + weight.name for weight in materials.spec.weights if weight.trained}
    assert trained
    for got, expected, before in ((second, after[1], after[0]), (third, after[2], after[1])):
        assert set(got) == set(expected)
        for key in expected:
            moved = float(np.linalg.norm(expected[key] - before[key]))
            assert float(np.linalg.norm(got[key] - expected[key])) <= 1e-4 * moved, key
            assert moved > 0 or key not in trained, key
