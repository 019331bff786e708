"""The reference of a user's own model against PyTorch written by hand in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
needs("onnxscript")

import own_nets  # noqa: E402
from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.training.reference import BUFFER, MEAN, SQUARE, WEIGHT, Batch  # noqa: E402
from fairlap.request.fields.training import AdamW, Sgd, Training  # noqa: E402
from learning_sources import OpenedHere  # noqa: E402

pytestmark = pytest.mark.slow

ROUNDING = 1e-10


def by_hand(opened: OpenedHere, name: str, *, training: bool) -> tuple[Any, Any, Any]:
    """Return the module in float64, its inputs and its labels."""
    module, _ = getattr(own_nets, name)()
    module = module.double().train(training)
    batch = opened.batch()
    (inputs,) = [torch.tensor(np.array(each)) for each in batch.inputs.values()]
    assert batch.labels is not None
    return (
        module,
        inputs.double() if inputs.is_floating_point() else inputs,
        torch.tensor(np.array(batch.labels)).long(),
    )


@pytest.mark.parametrize("name", ["convolutional", "transformer", "normalised"])
@pytest.mark.parametrize("training", [False, True])
def test_gradients_are_those_of_autograd_in_float64(
    opened_networks: dict[str, OpenedHere], name: str, training: bool
) -> None:
    found = opened_networks[name]
    module, inputs, labels = by_hand(found, name, training=training)
    scores = module(inputs)
    loss = torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))
    loss.backward()
    weights, batch = dict(InFloat64(found.weights)), found.batch()
    got = found.slopes.slopes(weights, Batch(dict(InFloat64(batch.inputs)), batch.labels), training=training)
    assert got.loss == pytest.approx(float(loss.detach()), rel=ROUNDING)
    expected = {key: each.grad.numpy() for key, each in module.named_parameters()}
    assert set(got.gradients) == set(expected)
    largest = max(np.abs(array).max() for array in expected.values())
    for key, array in expected.items():
        np.testing.assert_allclose(got.gradients[key], array, rtol=ROUNDING, atol=ROUNDING * largest)
    for key, array in got.averages.items():
        np.testing.assert_allclose(array, module.state_dict()[key].numpy(), rtol=ROUNDING)


OPTIMIZERS: dict[str, tuple[Sgd | AdamW, dict[str, str]]] = {
    "sgd": (Sgd(lr=0.1, momentum=0.9, decay=0.01), {BUFFER: "momentum_buffer"}),
    "adamw": (AdamW(lr=0.01, decay=0.1), {MEAN: "exp_avg", SQUARE: "exp_avg_sq"}),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("name", ["convolutional", "transformer", "normalised"])
def test_steps_are_those_of_a_loop_by_hand_in_float64(
    opened_networks: dict[str, OpenedHere], name: str, kind: str
) -> None:
    found = opened_networks[name]
    module, inputs, labels = by_hand(found, name, training=True)
    asked, kept = OPTIMIZERS[kind]
    if isinstance(asked, Sgd):
        loop: Any = torch.optim.SGD(module.parameters(), asked.lr, momentum=asked.momentum, weight_decay=asked.decay)
    else:
        loop = torch.optim.AdamW(
            module.parameters(), asked.lr, (asked.beta1, asked.beta2), asked.epsilon, weight_decay=asked.decay
        )
    for _ in range(3):
        loop.zero_grad()
        scores = module(inputs)
        torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1)).backward()
        loop.step()
    got = found.exercise(Training(asked), *[found.batch()] * 3).taken()
    state = module.state_dict()
    for weight in found.bundle.spec.weights:
        np.testing.assert_allclose(got[WEIGHT + weight.name], state[weight.name].numpy(), rtol=1e-8, atol=1e-9)
    for prefix, in_torch in kept.items():
        arrays = {key: loop.state[parameter][in_torch].numpy() for key, parameter in module.named_parameters()}
        largest = max(np.abs(array).max() for array in arrays.values())
        for key, array in arrays.items():
            np.testing.assert_allclose(got[prefix + key], array, rtol=1e-7, atol=1e-9 * largest)
