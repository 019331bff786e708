"""Which models of one's own can be trained, which of their weights, and on which routes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from machine_marks import needs

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
needs("onnxscript")

from fairlap.models.sources.contract import SourceError  # noqa: E402
from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.training.reference import Batch  # noqa: E402
from learning_sources import SUPPORT, OpenedHere, opened_here  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))


def test_dropout_has_gradients_and_is_not_trained(tmp_path: Path) -> None:
    bundle = opened_here("own_nets:dropping", "cross_entropy", tmp_path).bundle
    assert "dropout" in bundle.no_training
    assert bundle.spec.modes == ("infer", "grad", "train")


def test_batch_normalisation_is_trained_natively_alone(opened_networks: dict[str, OpenedHere]) -> None:
    bundle = opened_networks["normalised"].bundle
    assert bundle.no_training == ""
    assert bundle.routes["torch"].why_not_in("fp32", "train") == ""
    assert bundle.routes["jax"].why_not_in("fp32", "grad") == ""
    assert bundle.routes["jax"].why_not_in("fp32", "train") != ""
    fixed = {weight.name for weight in bundle.spec.weights if not weight.trained}
    assert fixed == {"normalised.running_mean", "normalised.running_var"}


def test_frozen_weights_and_buffers_are_not_trained(opened_networks: dict[str, OpenedHere], tmp_path: Path) -> None:
    bundle = opened_here("own_nets:partly_frozen", "cross_entropy", tmp_path).bundle
    assert {each.name for each in bundle.spec.weights if not each.trained} == {"first.weight", "first.bias"}
    bundle = opened_networks["transformer"].bundle
    assert {each.name for each in bundle.spec.weights if not each.trained} == {"scale"}


def test_a_weight_that_the_loss_does_not_depend_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as refused:
        opened_here("own_nets:unused", "cross_entropy", tmp_path)
    assert (refused.value.code, "never" in str(refused.value)) == ("E_LOSS", True)


def test_gradients_of_a_loss_of_one_s_own_are_those_of_autograd(tmp_path: Path) -> None:
    labels = np.arange(4, dtype=np.int64)
    np.save(tmp_path / "labels.npy", labels)
    found = opened_here("own_nets:convolutional", "own_nets:smoothed", tmp_path, str(tmp_path / "labels.npy"))
    assert found.bundle.routes["torch"].why_not_in("fp32", "grad") == ""
    assert found.bundle.routes["jax"].why_not_in("fp32", "grad") == ""
    import own_nets

    module, _ = own_nets.convolutional()
    module, batch = module.double(), found.batch()
    image = torch.tensor(np.array(batch.inputs["image"])).double()
    loss = own_nets.smoothed(module(image), torch.tensor(labels))
    loss.backward()
    inputs = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), inputs, training=True)
    assert got.loss == pytest.approx(loss.item(), rel=1e-12)
    for name, each in module.named_parameters():
        np.testing.assert_allclose(got.gradients[name], each.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("labels", [np.zeros(3, np.int64), np.zeros(4, np.float32), np.full(4, 10)])
def test_labels_that_do_not_fit_are_refused(labels: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(SourceError) as refused:
        opened_here("own_nets:convolutional", "cross_entropy", tmp_path, str(tmp_path / "labels.npy"))
    assert refused.value.code == "E_LOSS"


def test_gradients_of_a_file_are_those_of_the_module_that_it_was_made_of(
    opened_networks: dict[str, OpenedHere], tmp_path: Path
) -> None:
    of_module = opened_networks["transformer"]
    of_file = opened_here(str(of_module.folder / "exported.onnx"), "cross_entropy", tmp_path)
    assert of_file.bundle.no_training == ""
    batch = of_module.batch()
    wide = {name: dict(InFloat64(each.weights)) for name, each in (("module", of_module), ("file", of_file))}
    expected = of_module.slopes.slopes(wide["module"], batch, training=False)
    got = of_file.slopes.slopes(wide["file"], batch, training=False)
    assert got.loss == pytest.approx(expected.loss, rel=1e-6)  # the export rounds constants
    largest = max(np.abs(array).max() for array in expected.gradients.values())
    in_file = {name.removeprefix("module."): array for name, array in got.gradients.items()}
    in_file["table.weight"] = in_file["head.weight"]
    for name, array in expected.gradients.items():
        np.testing.assert_allclose(in_file[name], array, rtol=1e-5, atol=1e-6 * largest)


def test_averages_of_batch_normalisation_in_a_file_are_not_trained(
    opened_networks: dict[str, OpenedHere], tmp_path: Path
) -> None:
    file = opened_networks["normalised"].folder / "exported.onnx"
    bundle = opened_here(str(file), "cross_entropy", tmp_path).bundle
    assert bundle.no_training == ""
    assert [bundle.routes[name].why_not_in("fp32", "train") for name in ("torch", "jax", "tensorflow")] == [""] * 3
    fixed = {weight.name for weight in bundle.spec.weights if not weight.trained}
    assert fixed >= {"module.normalised.running_mean", "module.normalised.running_var"}
