"""Loading: dimensions are bound, weights keep their names, functions are expanded, and the rest is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.onnx_import import Graph, build, load_graph
from fairlap.models.onnx_import.errors import ModelFileInvalid
from onnx import TensorProto, helper, numpy_helper


def _saved(folder: Path, nodes: list[Any], weights: dict[str, Any], shape: list[Any] | None = None) -> Path:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    path = folder / "small.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return path


def _linear(folder: Path) -> Path:
    nodes = [helper.make_node("Gemm", ["x", "layer.weight", "layer.bias"], ["y"], transB=1)]
    weights = {"layer.weight": np.eye(2, 3, dtype=np.float32), "layer.bias": np.ones(2, np.float32)}
    return _saved(folder, nodes, weights)


def _code_of(path: Path, **bound: Any) -> str:
    with pytest.raises(FairlapError) as raised:
        load_graph(path, **bound)
    return raised.value.code


def test_dimensions_are_bound_and_weights_keep_their_names(tmp_path: Path) -> None:
    graph = load_graph(_linear(tmp_path), dimensions={"batch": 4})
    assert [(each.name, each.dtype, each.shape) for each in graph.inputs] == [("x", "float32", (4, 3))]
    assert [(each.name, each.dtype, each.shape) for each in graph.outputs] == [("y", "float32", (4, 2))]
    assert set(graph.weights) == {"layer.weight", "layer.bias"}


def test_a_shape_binds_as_a_dimension_does(tmp_path: Path) -> None:
    assert load_graph(_linear(tmp_path), shapes={"x": (4, 3)}).inputs[0].shape == (4, 3)


def test_numpy_computes_in_float64(tmp_path: Path) -> None:
    graph = load_graph(_linear(tmp_path), dimensions={"batch": 1})
    model = build(graph, "numpy")
    answer = model(model.prepare(graph.weights), {"x": np.array([[1, 2, 3]], np.float32)})
    assert answer["y"].dtype == np.float64
    assert answer["y"].tolist() == [[2, 3]]


def test_unbound_dimensions_are_refused(tmp_path: Path) -> None:
    assert _code_of(_linear(tmp_path)) == "E_MODEL_DIMENSIONS"


@pytest.mark.parametrize(
    "bound",
    [
        {"dimensions": {"length": 3}},
        {"dimensions": {"batch": 0}},
        {"shapes": {"z": (1, 3)}},
        {"shapes": {"x": (1, 4)}},
        {"shapes": {"x": (3,)}},
    ],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path: Path, bound: dict[str, Any]) -> None:
    assert _code_of(_linear(tmp_path), **bound) == "E_MODEL_DIMENSIONS"


def test_all_missing_operators_are_named_at_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Compress", ["x", "w", "r"], ["lstm"]),
        helper.make_node("Magic", ["places", "lstm"], ["y"], domain="com.example"),
    ]
    weights = {"w": np.zeros((1, 12, 3), np.float32), "r": np.zeros((1, 12, 3), np.float32)}
    with pytest.raises(FairlapError) as raised:
        load_graph(_saved(tmp_path, nodes, weights), dimensions={"batch": 1})
    assert raised.value.code == "E_MODEL_OPERATOR"
    assert all(name in str(raised.value) for name in ("NonZero", "Compress", "com.example.Magic"))


def test_shapes_are_computed_when_loading(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    graph = load_graph(
        _saved(tmp_path, nodes, {"first": np.array([0]), "rest": np.array([3, -1])}), dimensions={"batch": 5}
    )
    assert [node.operator for node in graph.nodes] == ["Reshape"]
    assert graph.outputs[0].shape == (5, 3, 1)
    assert not graph.weights


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "link.bin", "missing.bin", ""])
def test_external_data_may_not_leave_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(24))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    assert _code_of(_external(folder, location), dimensions={"batch": 1}) == "E_MODEL_FILE"


def test_external_data_are_read(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(8) + np.arange(6, dtype=np.float32).tobytes())
    graph: Graph = load_graph(_external(tmp_path, "data.bin", offset="8"), dimensions={"batch": 1})
    assert graph.weights["w"].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_external_data_of_another_length_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(23))
    assert _code_of(_external(tmp_path, "data.bin"), dimensions={"batch": 1}) == "E_MODEL_FILE"


def _external(folder: Path, location: str, **entries: str) -> Path:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3, 2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path = _saved(folder, [helper.make_node("MatMul", ["x", "w"], ["y"])], {})
    model = helper.make_model(helper.make_graph([], "empty", [], []))
    model.ParseFromString(path.read_bytes())
    model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(100)])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    assert _code_of(tmp_path / "m.onnx") == "E_MODEL_FILE"


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_a_resize_beyond_all_images_takes_no_memory(tmp_path: Path, mode: str) -> None:
    """The matrix of one axis would have had 16 GiB."""
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode)
    path = _saved(tmp_path, [node], {"scales": np.array([1, 1, 1, 2.0**16], np.float32)}, [1, 1, 1, 2**15])
    assert _code_of(path) == "E_MODEL_FILE"


def test_a_file_of_another_size_than_its_shape_takes_no_memory(tmp_path: Path) -> None:
    path = _linear(tmp_path)
    model = helper.make_model(helper.make_graph([], "empty", [], []))
    model.ParseFromString(path.read_bytes())
    model.graph.initializer[0].dims[0] = 2**40
    path.write_bytes(model.SerializeToString())
    assert _code_of(path, dimensions={"batch": 1}) == "E_MODEL_FILE"


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
