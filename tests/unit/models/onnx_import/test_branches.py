"""An If whose condition follows from the sizes is the branch that it takes; others are followed by each library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.frameworks.adapter_parts.onnx_graph import weights_in
from fairlap.models.onnx_import import build, load_graph
from machine_marks import needs
from margins import by_onnxruntime, by_torch
from onnx_files import drawn

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
needs("onnxruntime")


def branch(name: str, nodes: list[Any], result: str, arrays: dict[str, np.ndarray] | None = None) -> Any:
    helper = onnx.helper
    held = [onnx.numpy_helper.from_array(array, key) for key, array in (arrays or {}).items()]
    return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(result)], held)


def constant(name: str, value: Any) -> Any:
    return onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(value)))


def wide(name: str, size: int) -> list[Any]:
    """Compute whether x has so many columns."""
    make = onnx.helper.make_node
    return [
        make("Shape", ["x"], [f"{name}.shape"]),
        constant(f"{name}.one", 1),
        make("Gather", [f"{name}.shape", f"{name}.one"], [f"{name}.size"]),
        constant(f"{name}.wanted", size),
        make("Equal", [f"{name}.size", f"{name}.wanted"], [name]),
    ]


def chosen(path: Path, *, by_data: bool = False) -> tuple[Any, dict[str, np.ndarray]]:
    """Write two Ifs whose branches use the same names; the second has another inside, and both read from outside."""
    helper, make = onnx.helper, onnx.helper.make_node
    inner = make(
        "If",
        ["four"],
        ["chosen"],
        then_branch=branch("inner then", [make("Tanh", ["product"], ["deep"])], "deep"),
        else_branch=branch("inner else", [make("Neg", ["product"], ["deep"])], "deep"),
    )
    first = make(
        "If",
        ["four"],
        ["hidden"],
        then_branch=branch("then", [make("MatMul", ["x", "kernel"], ["product"])], "product", {"kernel": drawn(4, 3)}),
        else_branch=branch("else", [make("Identity", ["x"], ["product"])], "product"),
    )
    other = [constant("second.kernel", drawn(3, 3, seed=1)), make("MatMul", ["hidden", "second.kernel"], ["product"])]
    second = make(
        "If",
        ["other"],
        ["y"],
        then_branch=branch("then", [make("Neg", ["hidden"], ["product"])], "product"),
        else_branch=branch("else", [*other, inner], "chosen"),
    )
    by_value = [make("ReduceMax", ["x"], ["most"], keepdims=0), make("Greater", ["most", "zero"], ["other"])]
    nodes = [*wide("four", 4), first, *(by_value if by_data else wide("other", 9)), second]
    ends = [helper.make_tensor_value_info("x", 1, [2, 4]), helper.make_tensor_value_info("y", 1, None)]
    held = [onnx.numpy_helper.from_array(np.float32(0), "zero")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:], held), opset_imports=[helper.make_opsetid("", 13)]
    )
    model.ir_version = 7
    path.write_bytes(model.SerializeToString())
    return model, {"x": drawn(2, 4, seed=5)}


def test_branches_that_are_always_taken_compute_what_onnx_runtime_computes(tmp_path: Path) -> None:
    model, inputs = chosen(tmp_path / "m.onnx")
    graph = load_graph(tmp_path / "m.onnx")
    found = build(graph, "numpy")(graph.weights, inputs)["y"]
    by_hand = np.tanh(inputs["x"] @ drawn(4, 3) @ drawn(3, 3, seed=1))
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)
    np.testing.assert_allclose(found, by_onnxruntime(model, inputs)["y"], rtol=1e-5)


def test_weights_of_branches_keep_their_names_and_are_found_in_the_file(tmp_path: Path) -> None:
    model, _ = chosen(tmp_path / "m.onnx")
    graph = load_graph(tmp_path / "m.onnx")
    assert set(graph.weights) == {"kernel", "second.kernel"}
    held = weights_in(model.SerializeToString(), graph.weights)
    assert {name: id(array) for name, array in held.items()} == {
        name: id(array) for name, array in graph.weights.items()
    }
    changed = {**graph.weights, "second.kernel": graph.weights["second.kernel"] + 1}
    assert not np.array_equal(weights_in(model.SerializeToString(), changed)["second.kernel"], changed["second.kernel"])


@pytest.mark.parametrize("sign", [1, -1])
def test_data_choose_a_branch_which_has_another_inside(tmp_path: Path, sign: int) -> None:
    model, inputs = chosen(tmp_path / "m.onnx", by_data=True)
    inputs = {"x": (sign * np.abs(inputs["x"])).astype(np.float32)}
    graph = load_graph(tmp_path / "m.onnx")
    assert set(graph.weights) == {"kernel", "second.kernel"}
    hidden = inputs["x"] @ drawn(4, 3)
    by_hand = -hidden if sign > 0 else np.tanh(hidden @ drawn(3, 3, seed=1))
    np.testing.assert_allclose(build(graph, "numpy")(graph.weights, inputs)["y"], by_hand, rtol=1e-5)
    np.testing.assert_allclose(by_onnxruntime(model, inputs)["y"], by_hand, rtol=1e-5)
    np.testing.assert_allclose(by_torch(model, inputs, tmp_path)["y"], by_hand, rtol=1e-5)
