"""Graphs in fp8: ONNX Runtime and onnx's reference evaluator execute them alike, and answers are near those before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from fairlap.models.fp8_graphs.quantized_graph import NotInFp8, in_fp8
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(8)
FLOAT = TensorProto.FLOAT
NEAR = 0.25  # of the norm: four products, the one of squares twice, each of whose factors is off by 3 % on average


def model_of(
    nodes: Sequence[Any], arrays: dict[str, np.ndarray], shapes: dict[str, Sequence[int]], opset: int = 17
) -> Any:
    """Take the first of the shapes as the input's and the last as the output's."""
    first, *_, last = [helper.make_tensor_value_info(name, FLOAT, list(shape)) for name, shape in shapes.items()]
    held = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    graph = helper.make_graph(list(nodes), "net", [first], [last], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def convolutions(opset: int = 17) -> Any:
    """Write a convolution, a Relu, a transposed convolution, a matrix product of two activations, and a Gemm."""
    make = helper.make_node
    nodes = [
        make("Conv", ["image", "kernel", "bias"], ["convolved"], pads=[1, 1, 1, 1]),
        make("Relu", ["convolved"], ["positive"]),
        make("ConvTranspose", ["positive", "back"], ["wide"]),
        make("Transpose", ["wide"], ["turned"], perm=[0, 1, 3, 2]),
        make("MatMul", ["wide", "turned"], ["squares"]),
        make("Flatten", ["squares"], ["flat"]),
        make("Gemm", ["flat", "last"], ["scores"], transB=1),
    ]
    size = RNG.uniform(0.1, 4, (8, 1, 1, 1))  # channels of different sizes
    arrays = {
        "kernel": RNG.normal(size=(8, 3, 3, 3)) * size,
        "bias": RNG.normal(size=8),
        "back": RNG.normal(size=(8, 2, 2, 2)) / 4,
        "last": RNG.normal(size=(5, 2 * 7 * 7)) / 4,
    }
    return model_of(nodes, arrays, {"image": (2, 3, 6, 6), "scores": (2, 5)}, opset)


def session_answers(model: Any, inputs: dict[str, np.ndarray], level: str = "ORT_ENABLE_ALL") -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, inputs)[0]
    return found


def images(count: int) -> list[dict[str, np.ndarray]]:
    return [{"image": RNG.normal(size=(2, 3, 6, 6)).astype(np.float32)} for _ in range(count)]


def share_off(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("opset", [17, 21, 23])
def test_runtimes_execute_the_graph_as_the_reference_evaluator_does_and_near_the_file(opset: int) -> None:
    """With every optimisation: of a zero point of fp8, ONNX Runtime's would drop the Relu in front."""
    model, sets = convolutions(opset), images(4)
    inputs, exact = sets[0], [session_answers(model, own) for own in sets]
    found = in_fp8(model, sets)
    assert (found.changed, found.unchanged) == (4, 0)
    onnx.checker.check_model(found.model, full_check=True)
    by_reference = ReferenceEvaluator(found.model).run(None, inputs)[0]
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
        assert share_off(session_answers(found.model, inputs, level), by_reference) < 5e-3
    assert 1e-3 < share_off(by_reference, exact[0]) < NEAR


def test_weights_are_stored_in_one_byte_with_a_scale_for_each_channel_that_is_not_added_up() -> None:
    model, sets = convolutions(), images(2)
    before = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    graph = in_fp8(model, sets).model.graph
    held = {each.name: each for each in graph.initializer}
    scales = {}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in held:
            weight = node.input[0].removesuffix("/fp8")
            [axis] = [each.i for each in node.attribute if each.name == "axis"]
            scale, content = numpy_helper.to_array(held[node.input[1]]), held[node.input[0]]
            assert content.data_type == TensorProto.FLOAT8E4M3FN
            assert len(content.raw_data) == before[weight].size
            others = tuple(each for each in range(before[weight].ndim) if each != axis)
            assert scale == pytest.approx(np.abs(before[weight]).max(axis=others) / 448)
            numbers = numpy_helper.to_array(content).astype(np.float32)
            assert np.abs(numbers).max(axis=others) == pytest.approx(448)
            scales[weight] = axis
    assert scales == {"kernel": 0, "back": 1, "last": 0}
    assert before.keys() - {"bias"} & held.keys() == {"bias"} & held.keys() - {"bias"}, "float32 copies are gone"
    assert "bias" in held


def test_activations_have_one_scale_for_all_sets_of_inputs() -> None:
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": RNG.normal(size=(4, 3))}, {"x": (2, 4), "y": (2, 3)}
    )
    sets = [{"x": np.full((2, 4), size, np.float32)} for size in (1, -7, 3)]
    graph = in_fp8(model, sets).model.graph
    held = {each.name: each for each in graph.initializer}
    [quantize] = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    assert float(numpy_helper.to_array(held[quantize.input[1]])) == pytest.approx(7 / 448)


def test_one_weight_that_two_products_add_up_over_different_axes_has_scales_for_both() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], transB=1),
        helper.make_node("MatMul", ["h", "w"], ["again"]),
        helper.make_node("Gemm", ["again", "w"], ["y"], transB=1),
    ]
    model = model_of(nodes, {"w": RNG.normal(size=(6, 4))}, {"x": (3, 4), "y": (3, 6)})
    inputs = {"x": RNG.normal(size=(3, 4)).astype(np.float32)}
    exact = session_answers(model, inputs)
    made = in_fp8(model, [inputs]).model
    content = [each for each in made.graph.initializer if each.data_type == TensorProto.FLOAT8E4M3FN]
    assert len(content) == 2
    assert 0 < share_off(session_answers(made, inputs), exact) < NEAR


def test_the_answer_is_that_of_numbers_rounded_by_hand() -> None:
    weights = RNG.normal(size=(16, 8)).astype(np.float32)
    inputs = {"x": RNG.normal(size=(4, 16)).astype(np.float32)}
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": weights}, {"x": (4, 16), "y": (4, 8)})
    fp8 = ml_dtypes.float8_e4m3fn
    of_x, of_w = np.abs(inputs["x"]).max() / np.float32(448), np.abs(weights).max(axis=0) / np.float32(448)
    by_hand = ((inputs["x"] / of_x).astype(fp8).astype(np.float32) * of_x) @ (
        (weights / of_w).astype(fp8).astype(np.float32) * of_w
    )
    assert session_answers(in_fp8(model, [inputs]).model, inputs) == pytest.approx(by_hand, rel=1e-5, abs=1e-5)


def test_what_has_no_products_or_no_finite_ranges_is_refused() -> None:
    plain = model_of([helper.make_node("Relu", ["x"], ["y"])], {}, {"x": (2,), "y": (2,)})
    with pytest.raises(NotInFp8):
        in_fp8(plain, [])
    endless = model_of(
        [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("MatMul", ["e", "w"], ["y"])],
        {"w": np.ones((2, 2))},
        {"x": (2, 2), "y": (2, 2)},
    )
    with pytest.raises(NotInFp8, match="e"):
        in_fp8(endless, [{"x": np.full((2, 2), 1000, np.float32)}])
