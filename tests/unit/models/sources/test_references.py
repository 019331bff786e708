"""What answers are compared with, and how far they may be off: also where float64 is missing, or values cancel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.draw import rounded_to_bfloat16
from fairlap.models.sources.bundle import inputs_file, reference_file
from fairlap.models.sources.kinds import onnx_file
from fairlap.models.sources.proof import DrawsNumbers, require_no_drawing
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from margins import by_onnxruntime, share_of_tolerance
from onnx_files import BOUND, code_of, drawn, masked_lookup, materials_of, one_node, opened, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, INT64, BOOL = 1, 7, 9


def saved(path: Path, nodes: Sequence[Any], inputs: dict[str, tuple[int, list[int]]], arrays: dict[str, Any]) -> Path:
    helper = onnx.helper
    ends = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    held = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "graph", ends, [helper.make_tensor_value_info("out", FLOAT, None)], held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def cancelling(path: Path) -> Path:
    """Write the variance as the mean of squares less the square of the mean, as in Flax's layer normalisation."""
    make = onnx.helper.make_node
    nodes = [
        make("MatMul", ["x", "weight"], ["y"]),
        make("Mul", ["y", "y"], ["squares"]),
        make("ReduceMean", ["squares"], ["mean of squares"], axes=[1]),
        make("ReduceMean", ["y"], ["mean"], axes=[1]),
        make("Mul", ["mean", "mean"], ["square of mean"]),
        make("Sub", ["mean of squares", "square of mean"], ["variance"]),
        make("Relu", ["variance"], ["positive"]),
        make("Add", ["positive", "epsilon"], ["safe"]),
        make("Sqrt", ["safe"], ["deviation"]),
        make("Sub", ["y", "mean"], ["centred"]),
        make("Div", ["centred", "deviation"], ["out"]),
    ]
    weight = 1 + 1e-3 * drawn(16, 64)
    return saved(path, nodes, {"x": (FLOAT, [4, 16])}, {"weight": weight, "epsilon": np.float32(1e-6)})


def in_float32(weights: Arrays, inputs: Arrays) -> np.ndarray:
    y = inputs["x"] @ weights["weight"]
    variance = (y * y).mean(1, keepdims=True) - y.mean(1, keepdims=True) ** 2
    deviation = np.sqrt(np.maximum(variance, 0) + np.float32(1e-6))
    return np.asarray((y - y.mean(1, keepdims=True)) / deviation)


def test_a_float32_computation_whose_values_cancel_is_right_and_the_row_says_so(tmp_path: Path) -> None:
    materials = materials_of(source_of(cancelling(tmp_path / "m.onnx")), tmp_path)
    assert "W_ILL_CONDITIONED" in [notice.code for notice in materials.notices]
    answer = in_float32(materials.weights, materials.workload("inputs").inputs)
    assert answer.dtype == np.float32
    off = np.abs(answer - materials.reference("inputs")["out"]).max()
    assert off > 1e-4
    assert all(error.right for error in answers.array_errors(materials, {"out": answer}, "inputs", "before"))
    wrong = {"out": answer + 40 * off}
    with pytest.raises(OtherWork):
        answers.require_right_on(
            materials, wrong, "inputs", answers.array_errors(materials, wrong, "inputs", "before"), {}, "a call"
        )


@pytest.mark.parametrize("bias", [-12.0, -14.0, -16.0, -17.5])
def test_a_sigmoid_that_is_nearly_zero_may_round_as_a_number_near_one(bias: float, tmp_path: Path) -> None:
    """As ONNX Runtime's does, of whose answers near 1e-5 a hundredth is rounding; then other weights are still seen."""
    make = onnx.helper.make_node
    nodes = [
        make("MatMul", ["x", "weight"], ["y"]),
        make("Add", ["y", "bias"], ["z"]),
        make("Sigmoid", ["z"], ["out"]),
    ]
    arrays: dict[str, Any] = {"weight": drawn(16, 4096) / 4, "bias": np.float32(bias)}
    path = saved(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [4, 16])}, arrays)
    materials = materials_of(source_of(path), tmp_path)
    assert "W_ILL_CONDITIONED" in [notice.code for notice in materials.notices]
    inputs = materials.workload("inputs").inputs
    assert share_of_tolerance(materials, by_onnxruntime(onnx.load(path), inputs)) < 1
    other = saved(tmp_path / "other.onnx", nodes, {"x": (FLOAT, [4, 16])}, arrays | {"weight": 1.5 * arrays["weight"]})
    has_digits_left = bias > -15
    assert (share_of_tolerance(materials, by_onnxruntime(onnx.load(other), inputs)) > 1) == has_digits_left


def test_a_model_without_cancellation_keeps_its_bounds(tmp_path: Path) -> None:
    _, bundle = opened(source_of(masked_lookup(tmp_path / "m.onnx"), BOUND), tmp_path)
    assert bundle.notices == ()
    assert bundle.tolerances["fp32"]["logits"].relative < 1e-4


def chosen(path: Path, *, lacking: bool = True) -> Path:
    """Choose a branch by a rate of 8, if wanted with an operator that the importer lacks."""
    helper = onnx.helper
    then = [helper.make_node("MatMul", ["x", "weight"], ["product"]), helper.make_node("Tanh", ["product"], ["then"])]
    if lacking:
        then[1].output[0] = "tanh"
        then.append(helper.make_node("Compress", ["tanh", "all"], ["then"], axis=0))
    branches = {
        "then_branch": helper.make_graph(then, "then", [], [helper.make_tensor_value_info("then", FLOAT, None)]),
        "else_branch": helper.make_graph(
            [helper.make_node("Neg", ["x"], ["else"])], "else", [], [helper.make_tensor_value_info("else", FLOAT, None)]
        ),
    }
    nodes = [
        helper.make_node("Equal", ["rate", "eight"], ["is eight"]),
        helper.make_node("If", ["is eight"], ["out"], **branches),
    ]
    inputs = {"x": (FLOAT, [2, 4]), "rate": (INT64, [])}
    return saved(path, nodes, inputs, {"eight": np.int64(8), "weight": drawn(4, 4), "all": np.ones(2, bool)})


def test_a_branch_that_an_input_chooses_is_followed_by_the_importer(tmp_path: Path) -> None:
    folder, bundle = opened(source_of(chosen(tmp_path / "m.onnx", lacking=False)), tmp_path)
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    assert inputs["rate"] == 8
    expected = np.tanh(inputs["x"].astype(np.float64) @ drawn(4, 4).astype(np.float64))
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["out"], expected, rtol=1e-12)
    assert "importer" in bundle.reference
    assert not any(route.why_not for route in bundle.routes.values())


def test_an_operator_that_the_importer_lacks_in_a_branch_is_computed_by_onnx_reference(tmp_path: Path) -> None:
    folder, bundle = opened(source_of(chosen(tmp_path / "m.onnx")), tmp_path)
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    assert inputs["rate"] == 8
    expected = np.tanh(inputs["x"].astype(np.float64) @ drawn(4, 4).astype(np.float64))
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["out"], expected, rtol=1e-12)
    assert "onnx.reference" in bundle.reference
    assert bundle.routes["torch"].why_not


@pytest.fixture
def _without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def __init__(self, model: Any) -> None:
            pass

        def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
            return {"out": np.full((2, 4), 0.22)}

    monkeypatch.setattr(onnx_file, "DoubleGraph", Wrong)


@pytest.mark.usefixtures("_without_float64")
def test_onnx_runtime_in_float32_serves_where_onnx_reference_computes_something_else(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    folder, bundle = opened(source_of(chosen(tmp_path / "m.onnx")), tmp_path)
    assert "W_NO_REFERENCE" in [notice.code for notice in bundle.notices]
    x = safetensors.read(inputs_file(folder, "inputs"))["x"]
    found = safetensors.read(reference_file(folder, "inputs"))["out"]
    np.testing.assert_allclose(found, np.tanh(x @ drawn(4, 4)), rtol=1e-5)
    assert 0 < bundle.tolerances["fp32"]["out"].absolute < 1e-3


def test_a_loop_of_unknown_length_is_compared_with_onnx_runtime_and_the_other_size_is_named(tmp_path: Path) -> None:
    """onnx.reference joins rows of (1, 4) to (n, 4), where ONNX's Loop stacks them to (n, 1, 4)."""
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    weight, helper = drawn(4, 4), onnx.helper
    nodes = [
        helper.make_node("MatMul", ["before", "weight"], ["product"]),
        helper.make_node("Tanh", ["product"], ["after"]),
        helper.make_node("ReduceSum", ["after"], ["total"], keepdims=0),
        helper.make_node("Less", ["total", "limit"], ["more"]),
        helper.make_node("Identity", ["after"], ["row"]),
    ]
    state = [helper.make_tensor_value_info(name, FLOAT, [1, 4]) for name in ("before", "after", "row")]
    flags = [helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, []) for name in ("going", "more")]
    number = helper.make_tensor_value_info("number", INT64, [])
    body = helper.make_graph(nodes, "body", [number, flags[0], state[0]], [flags[1], *state[1:]])
    outer = [
        helper.make_node("Loop", ["most", "yes", "x"], ["last", "rows"], body=body),
        helper.make_node("ReduceSum", ["rows", "axes"], ["out"], keepdims=0),
    ]
    constants = {"weight": weight, "limit": np.float32(-0.1), "most": np.int64(50), "yes": np.True_}
    path = saved(tmp_path / "m.onnx", outer, {"x": (FLOAT, [1, 4])}, {**constants, "axes": np.array([0])})
    folder, bundle = opened(source_of(path), tmp_path)
    (notice,) = [each for each in bundle.notices if each.code == "W_NO_REFERENCE"]
    assert "1x4" in notice.text
    for which in ("inputs", "changed"):
        now = safetensors.read(inputs_file(folder, which))["x"].astype(np.float64)
        rows: list[np.ndarray] = []
        while len(rows) < 50 and (not rows or rows[-1].sum() < -0.1):
            now = np.tanh(now @ weight.astype(np.float64))
            rows.append(now)
        found = safetensors.read(reference_file(folder, which))["out"]
        np.testing.assert_allclose(found, np.sum(rows, axis=0), rtol=1e-4, atol=1e-6)


def test_operators_of_onnx_runtime_alone_are_compared_with_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    node = onnx.helper.make_node("CDist", ["x", "weight"], ["out"], domain="com.microsoft", metric="sqeuclidean")
    path = saved(tmp_path / "m.onnx", [node], {"x": (FLOAT, [2, 4])}, {"weight": drawn(3, 4)})
    folder, bundle = opened(source_of(path), tmp_path)
    assert "W_NO_REFERENCE" in [notice.code for notice in bundle.notices]
    assert bundle.routes["onnx"].name == "native"
    x = safetensors.read(inputs_file(folder, "inputs"))["x"]
    found = safetensors.read(reference_file(folder, "inputs"))["out"]
    np.testing.assert_allclose(found, np.square(x[:, None] - drawn(3, 4)).sum(-1), rtol=1e-5)


@pytest.mark.parametrize("seed", [{}, {"seed": 3.0}])
def test_an_operator_that_draws_random_numbers_is_named(tmp_path: Path, seed: dict[str, float]) -> None:
    node = onnx.helper.make_node("RandomNormalLike", ["x"], ["out"], **seed)
    assert (
        code_of(source_of(one_node(tmp_path / "m.onnx", node, {"x": (FLOAT, [2, 3])})), tmp_path) == "E_SOURCE_RANDOM"
    )


def test_answers_that_differ_on_the_same_inputs_are_those_of_a_model_that_draws() -> None:
    first = {"out": np.array([1.0, 2.0])}
    require_no_drawing(first, {"out": np.array([1.0, 2.0 + 1e-12])})
    with pytest.raises(DrawsNumbers) as refused:
        require_no_drawing(first, {"out": np.array([1.0, 2.1])})
    assert refused.value.code == "E_SOURCE_RANDOM"


@pytest.mark.parametrize("lacking", [False, True])
def test_a_branch_that_is_not_taken_need_not_fit_the_bound_sizes(lacking: bool, tmp_path: Path) -> None:
    """As silero-vad's, whose other branch is for another rate, and for other sizes of its input."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    model = onnx.load(chosen(tmp_path / "m.onnx", lacking=lacking))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "width"
    for attribute in model.graph.node[1].attribute:
        if attribute.name == "else_branch":
            product = onnx.helper.make_node("MatMul", ["x", "other"], ["else"])
            attribute.g.node[0].CopyFrom(product)
    model.graph.initializer.append(onnx.numpy_helper.from_array(drawn(3, 4), "other"))
    (tmp_path / "two.onnx").write_bytes(model.SerializeToString())
    folder, bundle = opened(source_of(tmp_path / "two.onnx", "width=4"), tmp_path)
    assert bundle.spec.inputs[0].shape == (2, 4)
    assert bool(bundle.routes["torch"].why_not) == lacking
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, safetensors.read(inputs_file(folder, "inputs")))
    expected = safetensors.read(reference_file(folder, "inputs"))["out"]
    np.testing.assert_allclose(answer, expected, rtol=1e-5)


def test_the_answers_of_a_model_with_powers_are_finite_when_its_weights_are_moved(tmp_path: Path) -> None:
    """The exponent is no weight: a negative number to the power of 2.0000001 is not a number."""
    node = onnx.helper.make_node("Pow", ["x", "two"], ["out"])
    path = saved(tmp_path / "m.onnx", [node], {"x": (FLOAT, [2, 4])}, {"two": np.array([2.0], np.float32)})
    _, bundle = opened(source_of(path), tmp_path)
    assert 0 < bundle.tolerances["fp32"]["out"].absolute < 1e-3


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "GlobalAveragePool"])
def test_a_plain_photo_may_be_added_up_as_onnx_runtime_does(operator: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    axes = {"axes": np.array([2, 3])} if operator == "ReduceSum" else {}
    attributes = {"axes": [2, 3]} if operator == "ReduceMean" else {}
    node = onnx.helper.make_node(operator, ["x", *axes], ["out"], **attributes)
    file = saved(tmp_path / "m.onnx", [node], {"x": (FLOAT, [1, 1, 96, 96])}, axes)
    plain = np.full((1, 1, 96, 96), (1 - 0.456) / 0.224, np.float32)  # white, as networks for photos take it
    np.savez(tmp_path / "photos.npz", x=plain)
    materials = materials_of(source_of(file, inputs=str(tmp_path / "photos.npz")), tmp_path)
    session = runtime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    for answer in (session.run(None, {"x": plain})[0], np.add.accumulate(plain.reshape(-1))[-1:].reshape(1, 1, 1, 1)):
        given = answer if operator == "ReduceSum" or answer.max() < 10 else answer / np.float32(plain.size)
        assert all(error.right for error in answers.array_errors(materials, {"out": given}, "inputs", "before"))
    wrong = {"out": materials.reference("inputs")["out"].astype(np.float32) * np.float32(1 + 1e-3)}
    assert not any(error.right for error in answers.array_errors(materials, wrong, "inputs", "before"))


PHOTO_SHAPE = (1, 1, 96, 96)


def averaging(operator: str, path: Path) -> Path:
    """Write a mean over a photo as a product with ones, each divided by their count."""
    make, count = onnx.helper.make_node, math.prod(PHOTO_SHAPE)
    nodes = {
        "MatMul": [make("Flatten", ["x"], ["row"]), make("MatMul", ["row", "ones"], ["out"])],
        "Gemm": [make("Flatten", ["x"], ["row"]), make("Gemm", ["row", "ones"], ["out"], transB=1)],
        "Conv": [make("Conv", ["x", "ones"], ["out"])],
        "Einsum": [make("Einsum", ["x", "ones"], ["out"], equation="bchw,hw->bc")],
    }
    shapes: dict[str, tuple[int, ...]] = {"MatMul": (count, 1), "Gemm": (1, count), "Conv": PHOTO_SHAPE}
    ones = np.full(shapes.get(operator, PHOTO_SHAPE[2:]), 1 / count, np.float32)
    return saved(path, nodes[operator], {"x": (FLOAT, [*PHOTO_SHAPE])}, {"ones": ones})


@pytest.mark.slow_but("Gemm", "MatMul", "Einsum")
@pytest.mark.parametrize("operator", ["MatMul", "Gemm", "Conv", "Einsum"])
@pytest.mark.parametrize("photo", ["plain", "ordinary"])
def test_a_mean_of_a_photo_may_be_written_as_a_product(operator: str, photo: str, tmp_path: Path) -> None:
    """What is right adds up in float32, also one after the other; what is wrong is rounded to fewer bits before."""
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    from wrong_conversions import in_tf32

    white = np.full(PHOTO_SHAPE, (1 - 0.456) / 0.224, np.float32)
    pixels = white if photo == "plain" else np.random.default_rng(5).random(PHOTO_SHAPE, np.float32)
    count = np.float32(pixels.size)
    file = averaging(operator, tmp_path / "m.onnx")
    np.savez(tmp_path / "photos.npz", x=pixels)
    materials = materials_of(source_of(file, inputs=str(tmp_path / "photos.npz")), tmp_path)
    exact = materials.reference("inputs")["out"]

    def share(mean: float) -> float:
        return share_of_tolerance(materials, {"out": np.full(exact.shape, mean, np.float32)})

    ways = [(pixels * np.float32(1 / count)).reshape(-1), pixels.reshape(-1)]
    means = [float(np.add.accumulate(ways[0])[-1]), float(np.add.accumulate(ways[1])[-1] / count)]
    if photo == "plain":
        assert max(abs(mean / exact.item() - 1) for mean in means) > 5e-5
    assert max(map(share, means)) <= 1
    assert share_of_tolerance(materials, by_onnxruntime(onnx.load(file), {"x": pixels})) <= 1
    assert share(rounded_to_bfloat16(pixels).mean(dtype=np.float64)) > 1
    assert share(exact.item() * (1 + 1e-3)) > 1
    if photo == "ordinary":
        assert share(in_tf32(pixels).mean(dtype=np.float64)) > 1
