"""Batch normalisation of an ONNX file in training: as onnx computes it, and as a loop by hand in float64 trains it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")

from fairlap.models.onnx_import.build import build  # noqa: E402
from fairlap.models.onnx_import.files.load import load_graph  # noqa: E402
from fairlap.models.onnx_import.training import in_training, why_no_batches  # noqa: E402
from fairlap.models.training.reference import WEIGHT  # noqa: E402
from fairlap.request.fields.training import Sgd, Training  # noqa: E402
from learning_sources import opened_here  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

BATCH, CHANNELS = 6, 3
EPSILON, MOMENTUM = 1e-3, 0.8
NAMES = ("scale", "shift", "mean", "variance")


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {name: rng.uniform(0.5, 1.5, CHANNELS) for name in NAMES}
    return {name: array.astype(np.float32) for name, array in found.items()}


def normalisation(outputs: tuple[str, ...], **attributes: Any) -> Any:
    return helper.make_node(
        "BatchNormalization", ["x", *NAMES], outputs, epsilon=EPSILON, momentum=MOMENTUM, **attributes
    )


def model(nodes: list[Any], shape: tuple[int, ...], outputs: dict[str, tuple[int, ...]], *further: Any) -> Any:
    held = [numpy_helper.from_array(array, name) for name, array in arrays().items()]
    graph = helper.make_graph(
        nodes,
        "normalised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, each) for name, each in outputs.items()],
        [*held, *further],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=9)


@pytest.mark.slow_but("torch", "numpy")
@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("shape", [(BATCH, CHANNELS, 4, 5), (BATCH, CHANNELS, 4), (BATCH, CHANNELS)])
def test_outputs_and_averages_are_those_of_onnx_itself(library: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    three = {"y": shape, "new mean": (CHANNELS,), "new variance": (CHANNELS,)}
    expected = ReferenceEvaluator(model([normalisation(tuple(three), training_mode=1)], shape, three)).run(
        None, {"x": x}
    )
    file = tmp_path / "m.onnx"
    onnx.save(model([normalisation(("y",))], shape, {"y": shape}), file)
    graph, moved = in_training(load_graph(file))
    built = build(graph, library)
    own = built.library
    found = built(built.prepare(arrays()), {"x": own.constant(x)})
    got = [np.asarray(found[name]) for name in ("y", moved["mean"], moved["variance"])]
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
    assert not np.allclose(got[1], arrays()["mean"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Normalise pixels under a linear layer."""
    rng = np.random.default_rng(2)
    weight, bias = rng.standard_normal((5, CHANNELS * 4)), rng.standard_normal(5)
    further = [
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in (("weight", weight), ("bias", bias))
    ]
    nodes = [
        normalisation(("normalised",)),
        helper.make_node("Flatten", ["normalised"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weight", "bias"], ["scores"], transB=1),
    ]
    whole = model(nodes, (BATCH, CHANNELS, 2, 2), {"scores": (BATCH, 5)}, *further)
    onnx.save(whole, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_three_steps_are_those_of_a_loop_by_hand(file: Path, tmp_path: Path) -> None:
    found = opened_here(str(file), "cross_entropy", tmp_path)
    assert {each.name for each in found.bundle.spec.weights if not each.trained} == {"mean", "variance"}
    batches = [found.batch(), found.batch("changed"), found.batch()]
    got = found.exercise(Training(Sgd(lr=0.1, momentum=0.9)), *batches).taken()
    held = {name: torch.tensor(array.astype(np.float64)) for name, array in found.weights.items()}
    learnt = [held[name].requires_grad_() for name in ("scale", "shift", "weight", "bias")]
    optimizer = torch.optim.SGD(learnt, lr=0.1, momentum=0.9)
    momentum = float(np.float32(MOMENTUM))
    for batch in batches:
        x = torch.tensor(np.array(batch.inputs["x"])).double()
        mean = x.mean((0, 2, 3))
        variance = ((x - mean[:, None, None]) ** 2).mean((0, 2, 3))
        standard = (x - mean[:, None, None]) / (variance[:, None, None] + float(np.float32(EPSILON))).sqrt()
        normalised = standard * held["scale"][:, None, None] + held["shift"][:, None, None]
        scores = normalised.flatten(1) @ held["weight"].T + held["bias"]
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(np.array(batch.labels)).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, of_batch in (("mean", mean), ("variance", variance)):
            held[name] = momentum * held[name] + (1 - momentum) * of_batch.detach()
    for name, array in held.items():
        np.testing.assert_allclose(got[WEIGHT + name], array.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def test_layers_that_share_an_array_move_averages_of_their_own(tmp_path: Path) -> None:
    """An exporter that writes equal arrays once leaves one for all layers of a net that was not trained."""
    second = helper.make_node("BatchNormalization", ["y", *NAMES], ["z"], epsilon=EPSILON, momentum=MOMENTUM)
    shape = (BATCH, CHANNELS, 2, 2)
    onnx.save(model([normalisation(("y",)), second], shape, {"z": shape}), tmp_path / "twice.onnx")
    found = opened_here(str(tmp_path / "twice.onnx"), "mse", tmp_path)
    assert found.bundle.no_training == ""
    fixed = [each.name for each in found.bundle.spec.weights if not each.trained]
    assert len(fixed) == 4
    end = found.exercise(Training(Sgd(lr=0.1)), found.batch()).taken()
    assert len({end[WEIGHT + name].tobytes() for name in fixed}) == 4


def test_averages_that_are_computed_cannot_be_moved(tmp_path: Path) -> None:
    doubled = helper.make_node("Add", ["mean", "shift"], ["sum"])
    node = helper.make_node("BatchNormalization", ["x", "scale", "shift", "sum", "variance"], ["y"])
    shape = (BATCH, CHANNELS, 2, 2)
    onnx.save(model([doubled, node], shape, {"y": shape}), tmp_path / "computed.onnx")
    assert "sum" in why_no_batches(load_graph(tmp_path / "computed.onnx"))
