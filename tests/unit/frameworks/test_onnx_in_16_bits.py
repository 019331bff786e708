"""ONNX graphs in float16 and bfloat16, compared with NumPy's float32 and rounded as IEEE 754 and ml_dtypes round."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest
from fairlap.frameworks.adapter_parts.precisions.onnx_in_16_bits import NAMES, in_16_bits
from fairlap.frameworks.contract import Unsupported
from fairlap.models.draw import rounded_to
from fairlap.request.work import Precision
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(7)
DTYPES: dict[Precision, Any] = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
UNIT: dict[Precision, float] = {"fp16": 2.0**-11, "bf16": 2.0**-8}
both = pytest.mark.parametrize("precision", ["fp16", "bf16"])


def model_of(
    nodes: list[Any],
    result: list[int],
    weights: dict[str, npt.NDArray[Any]],
    x: list[int],
    opset: int = 20,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", kind, x)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def converted(model: onnx.ModelProto, precision: Precision) -> tuple[onnx.ModelProto, dict[str, str]]:
    found = in_16_bits(model.SerializeToString(), precision)
    read = onnx.load_from_string(found.graph)
    onnx.checker.check_model(read, full_check=True)
    return read, found.in_force()


def run(model: onnx.ModelProto, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    [result] = ReferenceEvaluator(model).run(None, {"x": x})
    return np.asarray(result)


@both
def test_weights_inputs_and_outputs_have_the_type_and_are_rounded_to_nearest(precision: Precision) -> None:
    w = RNG.standard_normal((5, 4)).astype(np.float32)
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [2, 4], {"w": w}, [2, 5])
    found = in_16_bits(model.SerializeToString(), precision)
    read = onnx.load_from_string(found.graph)
    wanted = getattr(TensorProto, NAMES[precision].upper())
    assert {each.data_type for each in read.graph.initializer} == {wanted}
    assert {v.type.tensor_type.elem_type for v in (*read.graph.input, *read.graph.output)} == {wanted}
    assert np.array_equal(found.weights({"w": w})["w"], rounded_to(precision, w))
    x = RNG.standard_normal((2, 5)).astype(np.float32)
    result = run(read, x.astype(DTYPES[precision]))
    assert result.dtype == DTYPES[precision]
    error = np.abs(result.astype(np.float32) - x @ w).max()
    assert 0 < error < 8 * 5 * UNIT[precision]


def test_a_weight_beyond_the_range_of_float16_is_infinite_as_in_any_framework() -> None:
    w = np.full((1, 1), 7e4, np.float32)
    found = in_16_bits(
        model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [1, 1], {"w": w}, [1, 1]).SerializeToString(), "fp16"
    )
    assert np.isinf(found.weights({"w": w})["w"]).all()


@both
def test_what_onnx_fixes_to_float32_keeps_its_exact_values(precision: Precision) -> None:
    """The scales of a Resize: 1.7 in float16 would give another size of the result."""
    scales = np.array([1, 1.7], np.float32)
    nodes = [
        helper.make_node("Constant", [], ["scales"], value=numpy_helper.from_array(scales)),
        helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear"),
    ]
    read, in_force = converted(model_of(nodes, [2, 17], {}, [2, 10]), precision)
    [kept] = read.graph.initializer
    assert np.array_equal(numpy_helper.to_array(kept), scales)
    assert in_force == {}  # it computes in the type
    assert run(read, np.ones((2, 10), DTYPES[precision])).shape == (2, 17)


@both
def test_what_onnx_does_not_define_in_the_type_is_in_float32_and_reported(precision: Precision) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["end"], keepdims=0),
        helper.make_node("Range", ["zero", "end", "one"], ["counted"]),
        helper.make_node("Range", ["zero", "end", "one"], ["again"]),
        helper.make_node("Add", ["counted", "again"], ["y"]),
    ]
    weights = {"zero": np.array(0, np.float32), "one": np.array(1, np.float32)}
    read, in_force = converted(model_of(nodes, [4], weights, [3]), precision)
    assert in_force["nodes_in_float32"].startswith("2 Range")
    result = run(read, np.array([1, 4, 2], DTYPES[precision]))
    assert (result.dtype, result.tolist()) == (DTYPES[precision], [0.0, 2.0, 4.0, 6.0])


@both
def test_casts_and_constants_inside_of_branches_follow(precision: Precision) -> None:
    inner = [
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "half"], ["out"]),
    ]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, [3])
    branch = helper.make_graph(inner, "branch", [], [output])
    nodes = [
        helper.make_node("Identity", ["x"], ["n"]),
        helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch),
    ]
    read, _ = converted(model_of(nodes, [3], {}, [3], kind=TensorProto.INT64), precision)
    result = run(read, np.array([1, 2, 3]))
    assert (result.dtype, result.tolist()) == (DTYPES[precision], [0.5, 1.0, 1.5])


def test_a_convolution_gets_the_opset_in_which_it_takes_bfloat16() -> None:
    """The ninth operator set defines Conv in float16, the twenty-second in bfloat16 too (ONNX's Operators.md)."""
    w = RNG.standard_normal((3, 2, 3, 3)).astype(np.float32)
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [1, 3, 4, 4], {"w": w}, [1, 2, 6, 6], opset=17)
    opsets = {p: converted(model, p)[0].opset_import[0].version for p in NAMES}
    assert opsets == {"fp16": 17, "bf16": 22}


def test_a_graph_whose_products_would_stay_in_float32_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("No Adapter To Version 22 for Conv\nmore")

    monkeypatch.setattr(onnx.version_converter, "convert_version", refuse)
    w = np.zeros((1, 1, 1, 1), np.float32)
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], [1, 1, 2, 2], {"w": w}, [1, 1, 2, 2])
    with pytest.raises(Unsupported) as refused:
        in_16_bits(model.SerializeToString(), "bf16")
    assert "Conv takes no bfloat16" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
