"""Files of PyTorch in which batch normalisation's statistics are the very array that is its bias or scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")

from fairlap.models.sources.proof import InFloat64  # noqa: E402
from fairlap.models.training.reference import Batch  # noqa: E402
from learning_sources import opened_here  # noqa: E402


def fresh() -> Any:
    torch.manual_seed(0)
    layers = (torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten())
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 5)).eval()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export a net that was not trained yet."""
    file = tmp_path_factory.mktemp("exported") / "bn.onnx"
    keeps = {"do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE}
    torch.onnx.export(fresh(), (torch.randn(2, 3, 6, 6),), str(file), dynamo=False, verbose=False, **keeps)
    model = onnx.load(file)
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("Identity") == 2
    assert operators.count("BatchNormalization") == 1
    return file


def without_identities(file: Path, to: Path) -> Path:
    """As an optimizer leaves it: the same array is the bias and the mean."""
    model = onnx.load(file)
    same = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Identity"}
    kept = [node for node in model.graph.node if node.op_type != "Identity"]
    for node in kept:
        node.input[:] = [same.get(name, name) for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    onnx.save(model, to)
    return to


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("through_identities", [True, False])
def test_gradients_are_those_of_the_module_whose_statistics_are_not_trained(
    exported: Path, tmp_path: Path, through_identities: bool
) -> None:
    file = exported if through_identities else without_identities(exported, tmp_path / "shared.onnx")
    found = opened_here(str(file), "cross_entropy", tmp_path)
    module = fresh().double()
    batch = found.batch()
    (image,) = batch.inputs.values()
    scores = module(torch.tensor(np.array(image)).double())
    torch.nn.functional.cross_entropy(scores, torch.tensor(np.array(batch.labels)).long()).backward()
    inputs = Batch(dict(InFloat64(batch.inputs)), batch.labels)
    got = found.slopes.slopes(dict(InFloat64(found.weights)), inputs, training=False)
    expected = {name: each.grad.numpy() for name, each in module.named_parameters()}
    assert set(got.gradients) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(got.gradients[name], array, rtol=1e-5, atol=1e-6)
    fixed = [found.weights[weight.name] for weight in found.bundle.spec.weights if not weight.trained]
    assert sorted(float(each.sum()) for each in fixed if each.shape == (4,)) == [0.0, 4.0]
