"""Built-in models that are exported to ONNX and imported agree with their own references."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.arrays import hash_of
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.models.onnx_import.build import LibraryName
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from onnx_cases import LIBRARIES, Case, answers_of
from workloads_of_models import quick_models, workload_of

_CHOSEN: tuple[LibraryName, ...] = LIBRARIES if os.environ.get("FAIRLAP_TEST_IMPORTER") else ("numpy", "torch")
_CLOSE = {"numpy": 1e-10, "torch": 1e-5, "jax": 1e-5, "tensorflow": 1e-5}
_MODELS = [name for name in quick_models() if name != "callable" and not find(name).spec.continuation]


def _imported(work: Workload, folder: Path) -> tuple[Case, Graph]:
    model = work.implementation("onnx").build(work.weights, work.batch)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return Case(work.spec.name, model, work.inputs, {}, 0, 0), load_graph(folder / "model.onnx")


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


@pytest.mark.parametrize("name", _MODELS)
def test_the_weights_of_an_imported_model_hash_as_those_of_the_model(name: str, tmp_path: Path) -> None:
    work = workload_of(name)
    _, graph = _imported(work, tmp_path)
    assert hash_of({key: graph.weights[key] for key in work.weights}) == hash_of(work.weights)


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
