"""A loss of one's own goes with a model to the frameworks that it is converted for, or says why it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
needs("onnxscript")

from fairlap.models.onnx_import.files.load import load_graph  # noqa: E402
from fairlap.models.sources.contract import Route, SourceError  # noqa: E402
from fairlap.models.sources.learning.loss_graph import loss_on, with_own_loss  # noqa: E402
from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.training.reference import Batch  # noqa: E402
from fairlap.request.fields.source import Source  # noqa: E402
from learning_sources import SUPPORT, OpenedHere, opened_here  # noqa: E402

pytestmark = pytest.mark.slow

ROWS, CLASSES, SMOOTHING = 4, 10, 0.1
ROUTES = {"torch": Route("native"), "jax": Route("converted"), "tensorflow": Route("converted")}


@pytest.fixture(autouse=True)
def _networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))


def scores_and_labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS, CLASSES)).astype(np.float32), rng.integers(0, CLASSES, ROWS).astype(np.int32)


def source_with(loss: str, labels: np.ndarray, folder: Path) -> Source:
    np.save(folder / "labels.npy", labels)
    return Source("own", "own_nets:own", str(SUPPORT), loss=loss, labels=str(folder / "labels.npy"))


def smoothed_by_hand(scores: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Compute the loss and its gradient by the formula: shares minus smoothed labels, over the rows."""
    wide = scores.astype(np.float64)
    logs = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    wanted = (1 - SMOOTHING) * np.eye(CLASSES)[labels] + SMOOTHING / CLASSES
    return float(-(wanted * logs).sum(axis=1).mean()), (np.exp(logs) - wanted) / len(scores)


def in_jax(loss: Any, scores: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
    import jax

    found: tuple[Any, Any] = jax.jit(jax.value_and_grad(lambda held: loss((held,), jax.numpy.asarray(labels))))(scores)
    return found


def in_tensorflow(loss: Any, scores: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
    import tensorflow as tf

    held, given = tf.Variable(scores), tf.constant(labels)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def both() -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            value = loss((held,), given)
        return value, tape.gradient(value, held)

    found: tuple[Any, Any] = both()
    return found


@pytest.mark.parametrize(("framework", "call"), [("jax", in_jax), ("tensorflow", in_tensorflow)])
def test_a_loss_and_its_gradient_are_those_of_the_formula(framework: str, call: Any, tmp_path: Path) -> None:
    pytest.importorskip(framework, reason="`make test` installs it and runs this")
    scores, labels = scores_and_labels()
    source = source_with("own_nets:smoothed", labels, tmp_path)
    routes = with_own_loss(ROUTES, source, torch.from_numpy(scores).requires_grad_(), tmp_path)
    assert [each.no_gradients for each in routes.values()] == ["", "", ""]
    loss, gradient = call(loss_on(framework, source, tmp_path), scores, labels)
    expected, slopes = smoothed_by_hand(scores, labels)
    assert float(loss) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(np.asarray(gradient), slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", ["partly_detached", "with_backward_of_its_own", "not_there", "by_numpy"])
def test_a_loss_whose_export_is_another_has_no_gradients_elsewhere(loss: str, tmp_path: Path) -> None:
    scores, labels = scores_and_labels()
    source = source_with(f"own_nets:{loss}", labels, tmp_path)
    routes = with_own_loss(ROUTES, source, torch.from_numpy(scores).requires_grad_(), tmp_path)
    assert routes["torch"].no_gradients == ""
    assert routes["jax"].no_gradients == routes["tensorflow"].no_gradients != ""
    assert f"own_nets:{loss}" in routes["jax"].no_gradients


def test_a_loss_of_several_outputs_gets_them_as_the_module_returns_them(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.arange(4))
    found = opened_here("own_nets:two_headed", "own_nets:joint", tmp_path, str(tmp_path / "labels.npy"))
    assert [found.bundle.routes[name].why_not_in("fp32", "train") for name in ROUTES] == [""] * 3
    assert [tensor.name for tensor in load_graph(found.folder / "loss.onnx").inputs][-1] == "labels"


def test_a_loss_of_a_file_is_code_that_needs_trust(opened_networks: dict[str, OpenedHere], tmp_path: Path) -> None:
    file = opened_networks["convolutional"].folder / "exported.onnx"
    with pytest.raises(SourceError) as refused:
        opened_here(str(file), "own_nets:smoothed", tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"


def test_gradients_of_a_file_with_a_loss_of_one_s_own_are_those_of_its_module(
    opened_networks: dict[str, OpenedHere], tmp_path: Path
) -> None:
    import own_nets

    labels = np.arange(4)
    np.save(tmp_path / "labels.npy", labels)
    file = opened_networks["convolutional"].folder / "exported.onnx"
    found = opened_here(str(file), "own_nets:smoothed", tmp_path, str(tmp_path / "labels.npy"), trust=True)
    assert [found.bundle.routes[name].why_not_in("fp32", "train") for name in ROUTES] == [""] * 3
    module, batch = own_nets.convolutional()[0].double(), found.batch()
    (image,) = batch.inputs.values()
    own_nets.smoothed(module(torch.tensor(np.array(image)).double()), torch.tensor(labels)).backward()
    wide = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), wide, training=False).gradients
    in_file = {name.removeprefix("module."): array for name, array in got.items()}
    largest = max(float(each.grad.abs().max()) for each in module.parameters())
    for name, each in module.named_parameters():
        np.testing.assert_allclose(in_file[name], each.grad.numpy(), rtol=1e-5, atol=1e-6 * largest)
