"""The real frameworks, fed: every pipeline does the same job, and what comes out belongs to what went in."""

from __future__ import annotations

import functools

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Mode, Work
from fairlap.scenarios.process_result import ProcessResult
from one_block import processes_of_one_block

pytestmark = [pytest.mark.thorough, pytest.mark.sanitized, pytest.mark.timeout(600)]

NATIVE = (
    *("torch", "torch:compile", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla"),
    *("onnxruntime", "openvino"),
)
PEERS = ("torch:feed=dataloader", "torch:feed=dataloader:workers=2", "tensorflow:feed=tfdata")
TRAINERS = tuple(name for name in (*NATIVE, *PEERS) if name not in ("onnxruntime", "openvino"))
TRAINING: dict[Mode, Training | None] = {"infer": None, "train": Training(Sgd(lr=0.01, momentum=0.9))}
CANNOT = ("litert", "torch:slowdown=2%")


def here(name: str) -> bool:
    return is_importable(framework_named(contestant_named(name).framework))


@functools.cache
def race(model: str, contestants: tuple[str, ...], mode: Mode = "infer") -> dict[str, ProcessResult]:
    listed = ",".join(name for name in contestants if here(name))
    return processes_of_one_block(listed, Work(model, 4, mode, training=TRAINING[mode]), data="synthetic")


@pytest.mark.parametrize("name", [*NATIVE, *PEERS])
def test_a_fed_framework_answers_right_for_what_it_was_fed(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    process = race("mlp", (*NATIVE, *PEERS, *CANNOT))[name]
    assert process.outcome == "finished", process.message
    assert {"fed batch 0", "fed batch 1", "fed, after"} <= {error.when for error in process.errors}
    assert all(error.right for error in process.errors)
    assert process.feeding is not None
    assert process.feeding.items > 0
    assert (process.feeding.staging_ns is not None) == (name in NATIVE)


@pytest.mark.parametrize("name", CANNOT)
def test_a_framework_that_cannot_be_fed_is_unsupported(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    process = race("mlp", (*NATIVE, *PEERS, *CANNOT))[name]
    assert process.outcome == "unsupported"
    assert "--data" in process.message


@pytest.mark.parametrize("name", TRAINERS)
def test_a_fed_framework_trains_as_the_reference_does_on_what_it_was_fed(name: str) -> None:
    if not here(name):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    process = race("digits", TRAINERS, "train")[name]
    assert process.outcome == "finished", process.message
    assert {"fed, before", "fed, after"} <= {error.when for error in process.errors}
    assert all(error.right for error in process.errors)
    assert process.feeding is not None
    assert process.feeding.items == 4 * process.feeding.calls
    assert (process.feeding.staging_ns is not None) == (name in NATIVE)
