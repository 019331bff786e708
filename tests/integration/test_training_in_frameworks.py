"""The real frameworks train alike: weights, momenta and losses of a few steps against float64."""

from __future__ import annotations

import functools

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.process_result import ProcessResult
from fairlap.request.names import contestant_named
from fairlap.request.training import AdamW, Schedule, Sgd, Training
from fairlap.request.work import Work
from one_block import processes_of_one_block

pytestmark = pytest.mark.timeout(600)

ALL = ("torch", "torch:compile", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla")
TRAININGS = {
    "sgd": Training(Sgd(lr=0.01, momentum=0.9, decay=0.0005)),
    "adamw": Training(AdamW(lr=0.001), Schedule("cosine", warmup=2, steps=100)),
}
CHECKED = {"before", "changed inputs", "after", "timed call"}


QUICK = ("torch", "jax")
CASES = [
    *(pytest.param(name, ALL, "mlp", "adamw") for name in ALL),
    *(pytest.param(name, QUICK, "convnet", "sgd") for name in QUICK),
    *(
        pytest.param(name, ALL, model, training, marks=pytest.mark.thorough)
        for model, training in (("mlp", "sgd"), ("convnet", "sgd"), ("convnet", "adamw"))
        for name in ALL
    ),
]


@functools.cache
def race(names: tuple[str, ...], model: str, training: str) -> dict[str, ProcessResult]:
    """Once for all contestants."""
    listed = ",".join(each for each in names if is_importable(framework_named(contestant_named(each).framework)))
    return processes_of_one_block(listed, Work(model, 4, "train", training=TRAININGS[training]), threads=1)


@pytest.mark.parametrize(("name", "names", "model", "training"), CASES)
def test_every_framework_trains_as_the_reference_does(
    name: str, names: tuple[str, ...], model: str, training: str
) -> None:
    if not is_importable(framework_named(contestant_named(name).framework)):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    process = race(names, model, training)[name]
    assert process.outcome == "finished", process.message + process.details
    assert {error.when for error in process.errors} == CHECKED
    kinds = {error.what.partition(" ")[0] for error in process.errors}
    assert kinds == {"loss", "weight", *(["buffer"] if training == "sgd" else ["mean", "square"])}
    assert all(error.right for error in process.errors)
    assert process.in_force["optimizer"]
