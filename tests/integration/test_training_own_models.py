"""A user's own model takes the same gradients and steps of training in every framework that gets it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from command_line import output
from fairlap.models.sources.learning.loss_graph import with_own_loss
from fairlap.models.sources.tensorflow_files.keras_models import use_backend
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.gradients import GradientCheck, GradientExercise, gradients_expected
from fairlap.request.fields.training import AdamW, Sgd, Training
from learning_sources import SUPPORT, OpenedHere, opened_here
from own_model_contestants import STEPS, answers_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CONTESTANTS = ("torch", "torch:compile", "jax", "tensorflow:graph")


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here, since collecting would import them everywhere.
    for package in ("torch", "onnxscript", "jax", "optax", "tensorflow", "keras"):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT), prepend=":")


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("convolutional", Training(Sgd(lr=0.1, momentum=0.9))),
        ("transformer", Training(AdamW(lr=0.01))),
        ("padded", Training(AdamW(lr=0.01))),
    ],
)
def test_gradients_and_steps_of_a_torch_module_are_right_everywhere(
    name: str, training: Training, tmp_path: Path
) -> None:
    opened = opened_here(f"own_nets:{name}", "cross_entropy", tmp_path)
    require_right(opened, training, tmp_path, *CONTESTANTS)


@pytest.mark.parametrize(
    ("source", "contestant"),
    [
        *(("own_keras_nets:normalised", each) for each in ("tensorflow", "tensorflow:xla", "jax", "torch")),
        ("own_keras_nets:louder", "jax"),
        *(("own_jax_nets:recurrent", each) for each in ("jax", "tensorflow:graph", "tensorflow:xla")),
        *(("own_jax_nets:normalised", each) for each in ("jax", "tensorflow", "tensorflow:graph", "tensorflow:xla")),
        *(("own_flax_nets:in_linen", each) for each in ("jax", "tensorflow:graph")),
        *(("own_flax_nets:in_nnx", each) for each in ("jax", "tensorflow:graph")),
    ],
)
def test_gradients_and_steps_of_a_keras_model_and_a_jax_function_are_right_everywhere(
    source: str, contestant: str, tmp_path: Path
) -> None:
    """In a process for each, since Keras has one backend in a process."""
    if source.startswith("own_flax_nets:"):
        pytest.importorskip("flax", reason="flax is in no extra")
    use_backend("tensorflow")
    require_right(opened_here(source, "cross_entropy", tmp_path), Training(Sgd(lr=0.1)), tmp_path, contestant)


def test_batch_normalisation_of_a_file_is_by_the_batch_everywhere(tmp_path: Path) -> None:
    file = opened_here("own_nets:normalised", "cross_entropy", tmp_path).folder / "exported.onnx"
    opened = opened_here(str(file), "cross_entropy", tmp_path)
    assert sum(not weight.trained for weight in opened.bundle.spec.weights) == 2
    require_right(opened, Training(Sgd(lr=0.1, momentum=0.9)), tmp_path, *CONTESTANTS, "tensorflow:xla")


@pytest.mark.parametrize("contestant", ["tensorflow:graph", "jax", "torch"])
def test_a_loss_in_keras_is_the_same_on_each_backend(contestant: str, tmp_path: Path) -> None:
    use_backend("tensorflow")
    np.save(tmp_path / "labels.npy", np.arange(4))
    opened = opened_here("own_keras_nets:normalised", "own_keras_nets:sparse", tmp_path, f"{tmp_path}/labels.npy")
    require_right(opened, Training(AdamW(lr=0.01)), tmp_path, contestant)


@pytest.fixture
def labels(tmp_path: Path) -> str:
    np.save(tmp_path / "labels.npy", np.arange(4))
    return str(tmp_path / "labels.npy")


@pytest.mark.parametrize(
    ("source", "loss", "contestants"),
    [
        ("own_nets:two_headed", "own_nets:joint", CONTESTANTS),
        ("own_jax_nets:normalised", "own_jax_nets:smoothed", ("jax", "tensorflow:graph", "tensorflow:xla")),
    ],
)
def test_a_loss_of_one_s_own_goes_with_the_model(
    source: str, loss: str, contestants: tuple[str, ...], labels: str, tmp_path: Path
) -> None:
    require_right(opened_here(source, loss, tmp_path, labels), Training(Sgd(lr=0.1)), tmp_path, *contestants)


def test_a_loss_of_one_s_own_goes_with_a_file(labels: str, tmp_path: Path) -> None:
    file = opened_here("own_nets:normalised", "cross_entropy", tmp_path).folder / "exported.onnx"
    opened = opened_here(str(file), "own_nets:smoothed", tmp_path, labels, trust=True)
    require_right(opened, Training(AdamW(lr=0.01)), tmp_path, *CONTESTANTS)


def test_a_conversion_that_leaves_the_smoothing_out_of_a_loss_is_wrong(labels: str, tmp_path: Path) -> None:
    """As PyTorch's exporter does of a loss that is not decomposed."""
    import torch

    opened = opened_here("own_nets:convolutional", "own_nets:smoothed", tmp_path, labels)
    plain = msgspec.structs.replace(opened.bundle.source, loss="torch.nn.functional:cross_entropy")
    scores = torch.randn(4, 10, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert with_own_loss(opened.bundle.routes, plain, scores, opened.folder)["jax"].no_gradients == ""
    got = answers_of(opened.folder, Training(Sgd(lr=0.1)), tmp_path, "jax", modes=("grad",))
    exercise = GradientExercise(opened.slopes, opened.weights, opened.batch())
    apart, _ = GradientCheck(exercise, gradients_expected(exercise)).judged(got["jax", "grad"])
    assert max(apart.values()) > 10


def require_right(opened: OpenedHere, training: Training, tmp_path: Path, *contestants: str) -> None:
    got = answers_of(opened.folder, training, tmp_path, *contestants)
    exercise = GradientExercise(opened.slopes, opened.weights, opened.batch())
    gradients = GradientCheck(exercise, gradients_expected(exercise))
    steps = TrainingCheck(opened.exercise(training, *[opened.batch(which) for which in STEPS]))
    for contestant in contestants:
        apart, why = gradients.judged(got[contestant, "grad"])
        assert (max(apart.values()) <= 1, why) == (True, ""), contestant
        assert len(apart) == 1 + sum(weight.trained for weight in opened.bundle.spec.weights)
        apart, why = steps.judged(got[contestant, "train"])
        assert (max(apart.values()) <= 1, why) == (True, ""), contestant


@pytest.mark.parametrize("mode", ["grad", "train"])
def test_a_loss_of_one_s_own_may_compare_with_nothing(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain_loss.py").write_text("def loss(outputs, labels):\n    return (outputs**2).mean()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    asked = ("own_nets:convolutional", "--mode", mode, "--loss", "plain_loss:loss", "--on", "torch,jax")
    shown = output("compare", *asked, "--blocks", "1", "--seconds", "0.05", "--json")
    assert [row["outcome"] for row in json.loads(shown)["rows"]] == ["finished", "finished"]


@pytest.mark.parametrize("name", ["in_linen", "in_nnx"])
def test_a_flax_model_races_in_each_mode(name: str) -> None:
    pytest.importorskip("flax", reason="flax is in no extra")
    asked = (f"own_flax_nets:{name}", "--mode", "infer,grad,train", "--loss", "cross_entropy")
    shown = output("compare", *asked, "--on", "jax,tensorflow:graph", "--blocks", "1", "--seconds", "0.05", "--json")
    found = {(row["contestant"], row["mode"]): row["outcome"] for row in json.loads(shown)["rows"]}
    modes = ("infer", "grad", "train")
    assert found == {(each, mode): "finished" for each in ("jax", "tensorflow:graph") for mode in modes}
