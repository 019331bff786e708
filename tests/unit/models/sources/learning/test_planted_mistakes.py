"""Mistakes that people make in loops of their own, planted in PyTorch's adapter, are found, named and disqualified."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
needs("onnxscript")

from fairlap.frameworks.adapter_parts.losses import torch_losses  # noqa: E402
from fairlap.frameworks.adapter_parts.training.torch_training import TorchTraining  # noqa: E402
from fairlap.frameworks.contract import Contestant, Settings  # noqa: E402
from fairlap.frameworks.libraries import torch as adapter  # noqa: E402
from fairlap.models.arrays import Arrays  # noqa: E402
from fairlap.models.training.check import TrainingCheck  # noqa: E402
from fairlap.models.training.gradients import GradientCheck, GradientExercise, gradients_expected  # noqa: E402
from fairlap.race.equal_work import answers  # noqa: E402
from fairlap.race.equal_work.training_answers import state_errors  # noqa: E402
from fairlap.request.fields.training import AdamW, Sgd, Training  # noqa: E402
from fairlap.scenarios.calls.race.gradients import gradient_errors  # noqa: E402
from fairlap.scenarios.process_result import AnswerError  # noqa: E402
from learning_sources import OpenedHere  # noqa: E402
from own_model_contestants import STEPS, answer, workload  # noqa: E402

pytestmark = pytest.mark.slow

SGD = Training(Sgd(lr=0.05, momentum=0.9))
Plant = Callable[[pytest.MonkeyPatch], None]


def _with_loss(patch: pytest.MonkeyPatch, changed: Callable[..., Any]) -> None:
    """Plant a loss. ``changed`` takes the model, the right loss, the labels and the inputs."""
    right = torch_losses.loss_of_batch

    def planted(model: Any, kind: Any) -> Callable[..., Any]:
        loss = right(model, kind)
        return lambda labels, *inputs, **named: changed(model, loss, labels, *inputs, *named.values())

    for module in (adapter, torch_losses):  # of steps of training, and of gradients
        patch.setattr(module, "loss_of_batch", planted)


def adds_up(patch: pytest.MonkeyPatch) -> None:
    _with_loss(patch, lambda _model, loss, labels, *inputs: labels.numel() * loss(labels, *inputs))


def shifts_labels(patch: pytest.MonkeyPatch) -> None:
    _with_loss(patch, lambda _model, loss, labels, *inputs: loss(labels.roll(1), *inputs))


def takes_half(patch: pytest.MonkeyPatch) -> None:
    def changed(_model: Any, loss: Any, labels: Any, *inputs: Any) -> Any:
        return loss(labels[: len(labels) // 2], *(each[: len(each) // 2] for each in inputs))

    _with_loss(patch, changed)


def detaches(weight: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        def changed(model: Any, _loss: Any, labels: Any, *inputs: Any) -> Any:
            held = model.module.get_parameter(weight)
            scores = torch.func.functional_call(model.module, {weight: held.detach()}, inputs)
            return torch.nn.functional.cross_entropy(scores.flatten(0, -2), labels) + 0.0 * held.sum()

        _with_loss(patch, changed)

    return plant


def _before_steps(patch: pytest.MonkeyPatch, change: Callable[[TorchTraining], object]) -> None:
    step = TorchTraining.step

    def planted(self: TorchTraining, batch: Any, labels: Any) -> Any:
        change(self)
        return step(self, batch, labels)

    patch.setattr(TorchTraining, "step", planted)


def forgets_train(patch: pytest.MonkeyPatch) -> None:
    _before_steps(patch, lambda training: training._model.eval())


def freezes(weight: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        _before_steps(patch, lambda training: training._parameters[weight].requires_grad_(False))

    return plant


def accumulates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch.optim.Optimizer, "zero_grad", lambda *_, **__: None)


def leaves_to_pytorch(optimizer: str, *options: str) -> Plant:
    """Leave out what was asked of the optimizer, which then has its defaults."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(torch.optim, optimizer)

        def planted(*given: Any, **named: Any) -> Any:
            return right(*given, **{name: each for name, each in named.items() if name not in options})

        patch.setattr(torch.optim, optimizer, planted)

    return plant


def has_other_factors(patch: pytest.MonkeyPatch) -> None:
    right = torch.optim.AdamW
    patch.setattr(torch.optim, "AdamW", lambda *given, **named: right(*given, **{**named, "betas": (0.9, 0.99)}))


def couples_its_decay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch.optim, "AdamW", torch.optim.Adam)


def repeats_the_first_batch(patch: pytest.MonkeyPatch) -> None:
    step, first = TorchTraining.step, []

    def planted(self: TorchTraining, batch: Any, labels: Any) -> Any:
        first.append((batch, labels))
        return step(self, *first[0])

    patch.setattr(TorchTraining, "step", planted)


def takes_labels_late(patch: pytest.MonkeyPatch) -> None:
    step, before = TorchTraining.step, []

    def planted(self: TorchTraining, batch: Any, labels: Any) -> Any:
        before.append(labels)
        return step(self, batch, before[-2:][0])

    patch.setattr(TorchTraining, "step", planted)


ADAMW = Training(AdamW(lr=0.01, decay=0.1))
IN_A_NET: dict[str, tuple[Plant, Training, str]] = {
    "adds-up": (adds_up, SGD, "adds up the loss"),
    "accumulates": (accumulates, SGD, "does not clear its gradients"),
    "labels": (shifts_labels, SGD, "labels are shifted"),
    "half": (takes_half, SGD, "first half of each batch"),
    "repeated": (repeats_the_first_batch, SGD, "repeats a batch"),
    "late": (takes_labels_late, SGD, "labels of the batch before"),
    "momentum": (leaves_to_pytorch("SGD", "momentum"), SGD, "without momentum"),
    "rate": (leaves_to_pytorch("AdamW", "lr"), ADAMW, "learning rate is 0.1 times"),
    "weight-decay": (
        leaves_to_pytorch("AdamW", "weight_decay"),
        Training(AdamW(lr=0.01, decay=0.0)),
        "decays its weights by 0.01",
    ),
    "factors": (has_other_factors, ADAMW, "other factors"),
    "coupled": (couples_its_decay, ADAMW, "added to the gradient"),
}
IN_STEPS: dict[str, tuple[Plant, str, Training, str]] = {
    "no-train": (forgets_train, "normalised", SGD, "running averages"),
    **{
        f"{net}-{mistake}": (plant, net, training, named)
        for net in ("convolutional", "transformer")
        for mistake, (plant, training, named) in IN_A_NET.items()
    },
    **{
        f"{net}-detached": (detaches(weight), net, SGD, f"does not train {weight}")
        for net, weight in (("convolutional", "head.weight"), ("transformer", "blocks.0.joint.weight"))
    },
    **{
        f"{net}-frozen": (freezes(weight), net, SGD, f"does not train {weight}")
        for net, weight in (("convolutional", "head.bias"), ("transformer", "blocks.1.rest.2.bias"))
    },
}
IN_GRADIENTS: dict[str, tuple[Plant, str, str]] = {
    "adds-up": (adds_up, "E_OUTPUT", "adds up the loss"),
    "detached": (detaches("head.weight"), "E_GRADIENT", "head.weight is 0"),
    "labels": (shifts_labels, "E_GRADIENT", "labels are shifted"),
    "half": (takes_half, "E_GRADIENT", "first half of the batch"),
}


def prepared(opened: OpenedHere, mode: Any, training: Training) -> tuple[Any, Contestant]:
    work = workload(opened.folder, mode, training)
    return work, adapter.Torch().prepare(work, Settings(torch.get_num_threads()), lambda _: nullcontext())


def steps_of(opened: OpenedHere, training: Training) -> Arrays:
    work, made = prepared(opened, "train", training)
    found = answer(work, made, [workload(opened.folder, "train", training, which) for which in STEPS])
    return {name: np.asarray(array, np.float32) for name, array in found.items()}


def code_of(errors: list[AnswerError]) -> tuple[str, str]:
    with pytest.raises(answers.OtherWork) as refused:
        answers.require_right(errors, {})
    return refused.value.code, str(refused.value)


@pytest.fixture
def checked(opened_networks: dict[str, OpenedHere]) -> Callable[[str, Training], list[AnswerError]]:
    def errors(name: str, training: Training) -> list[AnswerError]:
        found = opened_networks[name]
        check = TrainingCheck(found.exercise(training, *[found.batch(which) for which in STEPS]))
        return state_errors(check, steps_of(found, training), "before")

    return errors


@pytest.mark.parametrize(("plant", "name", "training", "named"), IN_STEPS.values(), ids=IN_STEPS)
def test_a_step_with_a_mistake_is_disqualified_by_name(
    checked: Any, monkeypatch: pytest.MonkeyPatch, plant: Plant, name: str, training: Training, named: str
) -> None:
    assert all(error.right for error in checked(name, training))
    plant(monkeypatch)
    code, message = code_of(checked(name, training))
    assert code == "E_TRAINING"
    assert named in message


@pytest.mark.parametrize(("plant", "code", "named"), IN_GRADIENTS.values(), ids=IN_GRADIENTS)
def test_gradients_with_a_mistake_are_disqualified_by_name(
    opened_networks: dict[str, OpenedHere], monkeypatch: pytest.MonkeyPatch, plant: Plant, code: str, named: str
) -> None:
    found = opened_networks["convolutional"]
    exercise = GradientExercise(found.slopes, found.weights, found.batch())
    check = GradientCheck(exercise, gradients_expected(exercise))

    def errors() -> list[AnswerError]:
        work, made = prepared(found, "grad", SGD)
        return gradient_errors(check, answer(work, made, []), "before")

    assert all(error.right for error in errors())
    plant(monkeypatch)
    found_code, message = code_of(errors())
    assert found_code == code
    assert named in message
