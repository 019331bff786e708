"""The real frameworks train alike: weights, momenta and losses of a few steps against float64."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import pytest
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.models.registry import find
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.names import contestant_named
from fairlap.request.work import Precision, Work
from fairlap.scenarios.process_result import ProcessResult
from one_block import processes_of_one_block

pytestmark = pytest.mark.timeout(600)

ALL = ("torch", "torch:compile", "jax", "tensorflow", "tensorflow:graph", "tensorflow:xla")
TRAININGS = {
    "sgd": Training(Sgd(lr=0.01, momentum=0.9, decay=0.0005)),
    "plain": Training(Sgd(lr=0.01)),
    "adamw": Training(AdamW(lr=0.001), Schedule("cosine", warmup=2, steps=100)),
}
CHECKED = {"before", "changed inputs", "after", "timed call"}


QUICK = ("torch", "jax")
IN_BFLOAT16: tuple[tuple[str, Precision], ...] = (
    *((name, "bf16") for name in ALL),
    *((name, "autocast") for name in ("torch", "torch:compile", "tensorflow:graph")),
)
QUICK_IN_BFLOAT16 = (("torch", "bf16"), ("torch", "autocast"), ("jax", "bf16"), ("tensorflow:graph", "autocast"))
CASES = [
    *(pytest.param(name, ALL, "mlp", "adamw") for name in ALL),
    *(pytest.param(name, QUICK, "convnet", "sgd") for name in QUICK),
    *(
        pytest.param(name, ALL, model, training, marks=pytest.mark.thorough)
        for model, training in (("mlp", "sgd"), ("convnet", "sgd"), ("convnet", "adamw"))
        for name in ALL
    ),
    *(pytest.param(name, ALL[3:], "mlp", "plain", marks=pytest.mark.thorough) for name in ALL[3:]),
]
KEPT = {"plain": [], "sgd": ["buffer"], "adamw": ["mean", "square"]}


@functools.cache
def race(names: tuple[str, ...], model: str, training: str) -> dict[str, ProcessResult]:
    """Once for all contestants."""
    listed = ",".join(each for each in names if is_importable(framework_named(contestant_named(each).framework)))
    return processes_of_one_block(listed, Work(model, 4, "train", training=TRAININGS[training]), threads=1)


@pytest.mark.slow
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
    assert kinds == {"loss", "weight", *KEPT[training]}
    assert all(error.right for error in process.errors)
    assert process.in_force["optimizer"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "names", "model", "training"), CASES)
def test_weights_and_what_the_optimizer_keeps_are_layers_of_memory(
    name: str, names: tuple[str, ...], model: str, training: str
) -> None:
    if not is_importable(framework_named(contestant_named(name).framework)):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    held, spec = race(names, model, training)[name].memory.bytes, find(model).spec
    counters_bytes = 16 * (len(spec.weights) + 1)  # of steps, for each weight in PyTorch, and of batches
    weights_bytes = 4 * sum(math.prod(weight.shape) for weight in spec.weights)
    assert weights_bytes <= held["weights"] <= weights_bytes + counters_bytes
    kept_bytes = len(KEPT[training]) * 4 * spec.trained_parameters()
    assert kept_bytes <= held["optimizer_state"] <= kept_bytes + counters_bytes


def test_all_results_of_a_jax_program_are_ready_when_one_is() -> None:
    """So the adapter waits for the loss alone, however long the new state takes."""
    jax = pytest.importorskip("jax", reason="`make test` installs it and runs this")

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state: Any, batch: Any) -> Any:
        loss = batch.sum()
        for _ in range(4):
            state = jax.numpy.tanh(state @ state)
        return state, loss

    state, batch = jax.numpy.full((512, 512), 0.01), jax.numpy.ones(4)
    for _ in range(5):
        state, loss = step(state, batch)
        loss.block_until_ready()
        assert state.is_ready()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision", "model", "batch", "training"),
    [
        *(pytest.param(*case, "mlp", 4, "sgd") for case in QUICK_IN_BFLOAT16),
        *(
            pytest.param(*case, model, batch, training, marks=pytest.mark.thorough)
            for model, batch, training, cases in (
                ("mlp", 64, "adamw", IN_BFLOAT16),
                ("convnet", 4, "sgd", IN_BFLOAT16),
                ("convnet", 16, "adamw", QUICK_IN_BFLOAT16),
            )
            for case in cases
        ),
    ],
)
def test_training_in_bfloat16_is_right_within_what_it_rounds(
    name: str, precision: Precision, model: str, batch: int, training: str
) -> None:
    if not is_importable(framework_named(contestant_named(name).framework)):
        pytest.skip(f"{name} is not installed here; `make test` installs it and runs this")
    work = Work(model, batch, "train", precision, training=TRAININGS[training])
    process = processes_of_one_block(name, work, threads=1)[name]
    if precision == "autocast" and name.startswith("tensorflow") and "avx512f" not in Path("/proc/cpuinfo").read_text():
        assert (process.outcome, process.code) == ("disqualified", "E_PRECISION")  # it narrows nothing there
        return
    assert process.outcome == "finished", process.message + process.details
    assert process.in_force["precision"] == precision
    assert {error.when for error in process.errors} == CHECKED
    # More than float32 would be off, so the precision is really used.
    assert max(error.relative or 0.0 for error in process.errors if not error.what.startswith("loss")) > 1e-4
    assert "W_TRAINING_UNSEEN" in {notice.code for notice in process.warnings}


def test_mixed_precision_that_the_framework_does_not_have_is_refused() -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    process = processes_of_one_block("jax", Work("mlp", 4, "train", "autocast", training=TRAININGS["sgd"]))["jax"]
    assert (process.outcome, process.code) == ("unsupported", "E_UNSUPPORTED")
