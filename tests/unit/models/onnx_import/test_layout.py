"""With channels last, images are transposed once at each end and the answers stay the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fairlap.models.onnx_import import ImportedModel, build, load_graph
from workloads_of_models import workload_of


def _model(name: str, folder: Path) -> ImportedModel:
    work = workload_of(name)
    path = folder / "model.onnx"
    path.write_bytes(work.implementation("onnx").build(work.weights, work.batch).SerializeToString())
    return build(load_graph(path), "tensorflow")


def _transpositions(model: ImportedModel) -> int:
    functions = [step.function for step in model.steps]
    return sum(isinstance(each, partial) and each.func.__name__ == "_transposed" for each in functions)


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
