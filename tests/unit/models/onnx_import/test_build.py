"""Built-in models that are exported and imported agree with their references, in the layout of each library."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.arrays import hash_of
from fairlap.models.onnx_import import Graph, ImportedModel, build, load_graph
from fairlap.models.onnx_import.build import LibraryName
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from onnx_cases import LIBRARIES, Case, answers_of
from workloads_of_models import quick_models, workload_of

_CHOSEN: tuple[LibraryName, ...] = LIBRARIES if os.environ.get("FAIRLAP_TEST_IMPORTER") else ("numpy", "torch")
_CLOSE = {"numpy": 1e-10, "torch": 1e-5, "jax": 1e-5, "tensorflow": 1e-5}
_MODELS = [
    each for each in quick_models() if each.values[0] != "callable" and not find(each.values[0]).spec.continuation
]


def _imported(work: Workload, folder: Path) -> tuple[Case, Graph]:
    model = work.implementation("onnx").build(work.weights, work.batch)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return Case(work.spec.name, model, work.inputs, {}, 0, 0), load_graph(folder / "model.onnx")


@pytest.mark.slow_but("convnet", "mlp", "attention", "resnet8", "digits")
@pytest.mark.parametrize("library", _CHOSEN)
@pytest.mark.parametrize("name", _MODELS)
def test_an_imported_model_agrees_with_its_reference(name: str, library: LibraryName, tmp_path: Path) -> None:
    if library != "numpy":
        pytest.importorskip(library, reason="`make test` installs it and runs this")
    work = workload_of(name)
    case, graph = _imported(work, tmp_path)
    answers = answers_of(case, graph, library)
    for output, wanted in reference_answers(work).items():
        distance = np.linalg.norm(answers[output] - wanted) / np.linalg.norm(wanted)
        assert distance < _CLOSE[library]


@pytest.mark.slow_but("convnet", "mlp", "attention")
@pytest.mark.parametrize("name", _MODELS)
def test_the_weights_of_an_imported_model_hash_as_those_of_the_model(name: str, tmp_path: Path) -> None:
    work = workload_of(name)
    _, graph = _imported(work, tmp_path)
    assert hash_of({key: graph.weights[key] for key in work.weights}) == hash_of(work.weights)


@pytest.mark.slow
def test_an_imported_model_compiles_and_exports_without_graph_breaks(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    work = workload_of("convnet")
    _, graph = _imported(work, tmp_path)
    model = build(graph, "torch")
    weights = model.prepare(graph.weights)
    inputs = {name: torch.tensor(array) for name, array in work.inputs.items()}

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, weights: object, inputs: object) -> object:
            return model(weights, inputs)  # type: ignore[arg-type]

    eager = model(weights, inputs)["logits"]
    compiled = torch.compile(model, fullgraph=True, backend="eager")(weights, inputs)["logits"]
    exported = torch.export.export(Module(), (weights, inputs)).module()(weights, inputs)["logits"]
    assert torch.equal(eager, compiled)
    assert torch.equal(eager, exported)


def _model(name: str, folder: Path) -> ImportedModel:
    work = workload_of(name)
    path = folder / "model.onnx"
    path.write_bytes(work.implementation("onnx").build(work.weights, work.batch).SerializeToString())
    return build(load_graph(path), "tensorflow")


def _transpositions(model: ImportedModel) -> int:
    functions = [step.function for step in model.steps]
    return sum(isinstance(each, partial) and each.func.__name__ == "_transposed" for each in functions)


@pytest.mark.slow_but("mobilenet_v2")
@pytest.mark.parametrize("name", ["convnet", "mobilenet_v2"])
def test_an_image_network_transposes_its_image_and_nothing_else(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    assert _transpositions(_model(name, tmp_path)) == 1


def test_weights_come_back_in_the_layout_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    model = _model("convnet", tmp_path)
    prepared = model.prepare(model.graph.weights)
    assert any(tuple(prepared[name].shape) != array.shape for name, array in model.graph.weights.items())
    for name, array in model.graph.weights.items():
        assert np.array_equal(model.original(name, prepared[name]), array)


@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 0, 1, 1], [2, 0, 0, 2], [0, 0, 0, 0]])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [8, 9])
def test_pads_of_all_kinds_are_those_of_the_reference(tmp_path: Path, pads: list[int], stride: int, size: int) -> None:
    pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    tf = pytest.importorskip("tensorflow", reason="`make test` installs it and runs this")
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(1)
    arrays = {
        "kernel": random.normal(size=(4, 1, 3, 3)).astype(np.float32),
        "bias": random.normal(size=4).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["image", "kernel", "bias"], ["sum"], group=4, pads=pads, strides=[stride, stride]),
        helper.make_node("Relu", ["sum"], ["result"]),
    ]
    graph = helper.make_graph(
        nodes,
        "depthwise",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 4, size, size])],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    path = tmp_path / "depthwise.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    loaded = load_graph(path)
    image = random.normal(size=(2, 4, size, size)).astype(np.float32)
    reference, model = build(loaded, "numpy"), build(loaded, "tensorflow")
    (wanted,) = reference(reference.prepare(loaded.weights), {"image": image}).values()
    variables = {name: tf.Variable(array) for name, array in model.prepare(loaded.weights).items()}
    call = tf.function(lambda inputs: model(variables, inputs), autograph=False)
    (found,) = call({"image": tf.constant(image)}).values()
    assert np.allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)
