"""A user's own model takes the same gradients and steps of training in every framework that gets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.gradients import GradientCheck, GradientExercise, gradients_expected
from fairlap.request.fields.training import AdamW, Sgd, Training
from learning_sources import SUPPORT, opened_here
from own_model_contestants import STEPS, answers_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CONTESTANTS = ("torch", "torch:compile", "jax", "tensorflow:graph")


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in (
        "torch",
        "onnxscript",
        "jax",
        "optax",
        "tensorflow",
    ):  # here, since collecting would import them everywhere
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT), prepend=":")


@pytest.mark.parametrize(
    ("name", "training"),
    [("convolutional", Training(Sgd(lr=0.1, momentum=0.9))), ("transformer", Training(AdamW(lr=0.01)))],
)
def test_gradients_and_steps_of_a_torch_module_are_right_everywhere(
    name: str, training: Training, tmp_path: Path
) -> None:
    opened = opened_here(f"own_nets:{name}", "cross_entropy", tmp_path)
    got = answers_of(opened.folder, training, tmp_path, *CONTESTANTS)
    exercise = GradientExercise(opened.slopes, opened.weights, opened.batch())
    gradients = GradientCheck(exercise, gradients_expected(exercise))
    steps = TrainingCheck(opened.exercise(training, *[opened.batch(which) for which in STEPS]))
    for contestant in CONTESTANTS:
        apart, why = gradients.judged(got[contestant, "grad"])
        assert (max(apart.values()) <= 1, why) == (True, ""), contestant
        assert len(apart) == 1 + sum(weight.trained for weight in opened.bundle.spec.weights)
        apart, why = steps.judged(got[contestant, "train"])
        assert (max(apart.values()) <= 1, why) == (True, ""), contestant
