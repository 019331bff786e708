"""Functions that an ONNX file brings are expanded; those that never end are refused before anything expands them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.load import load_graph

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
DOMAIN = "of.the.file"


def file_with(tmp_path: Path, functions: dict[str, list[tuple[str, str]]], called: str) -> Path:
    """Write a file whose functions are chains of nodes, each a domain and an operator of one input and one output."""
    from onnx import TensorProto, helper

    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]

    def chain(nodes: list[tuple[str, str]]) -> list[Any]:
        names = ["x", *(f"t{place}" for place in range(len(nodes) - 1)), "y"]
        return [
            helper.make_node(operator, [names[place]], [names[place + 1]], domain=domain)
            for place, (domain, operator) in enumerate(nodes)
        ]

    made = [helper.make_function(DOMAIN, name, ["x"], ["y"], chain(nodes), opsets) for name, nodes in functions.items()]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(chain([(DOMAIN, called)]), "g", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=opsets, functions=made)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    return tmp_path / "model.onnx"


def test_a_function_is_expanded(tmp_path: Path) -> None:
    graph = load_graph(file_with(tmp_path, {"f": [("", "Relu"), ("", "Neg")]}, "f"))
    assert [node.operator for node in graph.nodes] == ["Relu", "Neg"]
    assert np.dtype(graph.inputs[0].dtype) == np.float32


def test_functions_that_double_thirty_times_are_refused(tmp_path: Path) -> None:
    functions = {f"f{level}": 2 * [(DOMAIN, f"f{level + 1}")] for level in range(30)}
    with pytest.raises(ModelFileInvalid, match="nodes"):
        load_graph(file_with(tmp_path, {**functions, "f30": [("", "Relu")]}, "f0"))


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileInvalid, match="calls itself"):
        load_graph(file_with(tmp_path, {"f": [(DOMAIN, "g")], "g": [(DOMAIN, "f")]}, "f"))
