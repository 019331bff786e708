"""Files in sixteen bits and in quantized integers: right runtimes are right, and those with a small mistake are wrong.

What is right is computed by hand, and by ONNX Runtime from files that its own tools make. Signed weights of eight bits
are left out there: on processors without VNNI its products of unsigned and signed bytes saturate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import weights_file
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from margins import by_onnxruntime, by_torch, share_of_tolerance
from onnx_files import drawn, materials_of, opened, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, FLOAT16, BFLOAT16, INT8, UINT8 = 1, 10, 16, 3, 2
SHAPE = (8, 64)


def two_layers(path: Path) -> Path:
    """Write a product, a Relu and a product in float32."""
    make = onnx.helper.make_node
    nodes = [
        make("MatMul", ["x", "first"], ["product"]),
        make("Add", ["product", "shift"], ["sum"]),
        make("Relu", ["sum"], ["hidden"]),
        make("MatMul", ["hidden", "second"], ["y"]),
    ]
    arrays = {"first": drawn(64, 128), "shift": drawn(128), "second": drawn(128, 16, seed=1)}
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    ends = [onnx.helper.make_tensor_value_info(name, FLOAT, [8, size]) for name, size in (("x", 64), ("y", 16))]
    graph = onnx.helper.make_graph(nodes, "two layers", ends[:1], ends[1:], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


SCALES = {"x": 0.02437, "first": 0.010313, "hidden": 0.02171, "second": 0.01219, "y": 0.1913}
ZEROS = {"x": 128, "first": 0, "hidden": 0, "second": 3, "y": 120}


def quantized_by_hand(path: Path) -> Path:
    """Write x, both weights and both results in steps of eight bits, around float32 products."""
    make, helper = onnx.helper.make_node, onnx.helper
    nodes = []

    def steps(name: str, real: str) -> None:
        nodes.append(make("QuantizeLinear", [real, f"{name}.scale", f"{name}.zero"], [f"{name}.steps"]))

    def real(name: str) -> str:
        nodes.append(make("DequantizeLinear", [f"{name}.steps", f"{name}.scale", f"{name}.zero"], [f"{name}.real"]))
        return f"{name}.real"

    steps("x", "x")
    nodes.append(make("MatMul", [real("x"), real("first")], ["product"]))
    nodes.append(make("Relu", ["product"], ["positive"]))
    steps("hidden", "positive")
    nodes.append(make("MatMul", [real("hidden"), real("second")], ["second.product"]))
    steps("y", "second.product")
    nodes.append(make("DequantizeLinear", ["y.steps", "y.scale", "y.zero"], ["y"]))
    held = [onnx.numpy_helper.from_array(np.float32(value), f"{name}.scale") for name, value in SCALES.items()]
    for name, value in ZEROS.items():
        kind = np.int8 if name in WEIGHTS else np.uint8
        held.append(onnx.numpy_helper.from_array(kind(value), f"{name}.zero"))
    held += [onnx.numpy_helper.from_array(array, f"{name}.steps") for name, array in WEIGHTS.items()]
    ends = [helper.make_tensor_value_info(name, FLOAT, [8, size]) for name, size in (("x", 64), ("y", 16))]
    model = helper.make_model(
        helper.make_graph(nodes, "steps", ends[:1], ends[1:], held), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


WEIGHTS = {
    name: np.random.default_rng(len(name)).integers(-64, 64, shape).astype(np.int8)
    for name, shape in (("first", (64, 128)), ("second", (128, 16)))
}


def by_hand(
    x: np.ndarray,
    *,
    scales: Mapping[str, float] = SCALES,
    into_steps: Mapping[str, float] = SCALES,
    zeros: Mapping[str, int] = ZEROS,
    clamped: tuple[str, ...] = ("x", "hidden", "y"),
    turned: bool = False,
) -> np.ndarray:
    """As an integer kernel does it: sums of whole numbers, scaled once and rounded."""

    def steps_of(real: np.ndarray, name: str) -> np.ndarray:
        found = np.round(real / np.float32(into_steps[name])).astype(np.int64) + zeros[name]
        return (np.clip(found, 0, 255) if name in clamped else found) - zeros[name]

    first, second = (array.astype(np.int64) for array in WEIGHTS.values())
    total = steps_of(x, "x") @ (first - zeros["first"])
    hidden = steps_of(np.maximum(total, 0) * np.float32(scales["x"] * scales["first"]), "hidden")
    total = (hidden - zeros["second"]) @ second if turned else hidden @ (second - zeros["second"])
    steps = steps_of(total * np.float32(scales["hidden"] * scales["second"]), "y")
    return (steps * np.float32(scales["y"])).astype(np.float32)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> Materials:
    folder = tmp_path_factory.mktemp("quantized")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        return materials_of(source_of(quantized_by_hand(folder / "m.onnx")), folder)


def checked(materials: Materials, answer: np.ndarray) -> None:
    errors = answers.array_errors(materials, {"y": answer}, "inputs", "before")
    answers.require_right_on(materials, {"y": answer}, "inputs", errors, {}, "a call")


def test_the_reference_of_a_quantized_file_takes_the_same_steps_as_integers_do(quantized: Materials) -> None:
    for which in ("inputs", "changed"):
        x = quantized.workload(which).inputs["x"]
        np.testing.assert_allclose(quantized.reference(which)["y"], by_hand(x), rtol=1e-6)


def test_integer_kernels_are_right_and_the_row_says_what_the_file_computes_in(quantized: Materials) -> None:
    checked(quantized, by_hand(quantized.workload("inputs").inputs["x"]))
    assert [notice.code for notice in quantized.notices] == ["W_FILE_PRECISION"]
    assert all(word in quantized.notices[0].text for word in ("int8", "uint8"))
    assert quantized.spec.precisions == ("fp32",)


@pytest.mark.parametrize("which", ["hidden", "y"])
def test_one_value_on_the_other_side_of_an_edge_is_right(quantized: Materials, which: str) -> None:
    x = quantized.workload("inputs").inputs["x"]
    answer = by_hand(x)
    if which == "y":
        answer[2, 3] += np.float32(SCALES["y"])
    else:  # one step of one hidden number, in all of its row
        answer[5] += (WEIGHTS["second"][7] - ZEROS["second"]) * np.float32(SCALES["hidden"] * SCALES["second"])
    checked(quantized, answer)


def off_by_a_percent(name: str) -> dict[str, float]:
    return {**SCALES, name: 1.01 * SCALES[name]}


WRONG: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"the scale of {name} is off by a percent": partial(by_hand, scales=off_by_a_percent(name)) for name in SCALES},
    **{
        f"the scale of {name} is off by a percent where it is rounded": partial(
            by_hand, into_steps=off_by_a_percent(name)
        )
        for name in ("x", "hidden", "y")
    },
    **{
        f"the zero point of {name} is off by one": partial(by_hand, zeros={**ZEROS, name: ZEROS[name] + 1})
        for name in ("first", "second")
    },
    "a zero point is applied to the other operand": lambda x: by_hand(x, turned=True),
    "zero points of the weights are exchanged": lambda x: by_hand(x, zeros={**ZEROS, "first": 3, "second": 0}),
    "hidden values are not clamped": lambda x: by_hand(x, clamped=("x", "y")),
    "answers are not clamped": lambda x: by_hand(x, clamped=("x", "hidden")),
    "every value is cut to the step below": lambda x: by_hand(x - np.float32(SCALES["x"] / 2)),
    "nothing is quantized": lambda x: np.asarray(
        np.maximum(x @ (WEIGHTS["first"] * np.float32(SCALES["first"])), 0)
        @ ((WEIGHTS["second"] - np.float32(ZEROS["second"])) * np.float32(SCALES["second"]))
    ),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_small_mistake_in_a_quantized_model_is_wrong(quantized: Materials, how: str) -> None:
    with pytest.raises(OtherWork) as wrong:
        checked(quantized, WRONG[how](quantized.workload("inputs").inputs["x"]))
    assert wrong.value.code == "E_OUTPUT"


def test_the_weights_of_a_quantized_file_are_hashed_by_their_values(quantized: Materials) -> None:
    held = safetensors.read(weights_file(quantized.folder))
    for name, array in WEIGHTS.items():
        assert held[f"{name}.steps"].dtype == np.float32
        np.testing.assert_array_equal(held[f"{name}.steps"], array)


class _Batches:
    def __init__(self) -> None:
        self._left = [np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32) for seed in range(4)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return {"x": self._left.pop()} if self._left else None


def made_by_tools(how: str, folder: Path) -> Path:
    quantization = pytest.importorskip("onnxruntime.quantization", reason="`make test` installs it and runs this")
    whole, made = two_layers(folder / "float.onnx"), folder / f"{how}.onnx"
    unsigned = quantization.QuantType.QUInt8
    if how == "float16":
        from onnxruntime.transformers.float16 import convert_float_to_float16

        onnx.save(convert_float_to_float16(onnx.load(whole), keep_io_types=False), made)
    elif how == "dynamic":
        quantization.quantize_dynamic(whole, made, weight_type=unsigned)
    else:
        quantization.quantize_static(
            whole,
            made,
            _Batches(),
            quant_format=quantization.QuantFormat[how],
            activation_type=unsigned,
            weight_type=unsigned,
        )
    return made


@pytest.mark.parametrize("how", ["QDQ", "QOperator", "dynamic", "float16"])
def test_files_of_the_usual_tools_are_right_in_onnx_runtime_and_through_the_importer(how: str, tmp_path: Path) -> None:
    materials = materials_of(source_of(made_by_tools(how, tmp_path)), tmp_path)
    assert "W_FILE_PRECISION" in [notice.code for notice in materials.notices]
    assert materials.tells_inputs_apart
    model, inputs = onnx.load(materials.folder / "model.onnx"), materials.workload("inputs").inputs
    for found in (by_onnxruntime(model, inputs), by_torch(model, inputs, tmp_path)):
        assert share_of_tolerance(materials, found) < 0.5
        errors = answers.array_errors(materials, {"y": found["y"]}, "inputs", "before")
        answers.require_right(errors, {})


def test_values_whose_steps_are_chosen_in_each_call_may_stay_real_numbers(tmp_path: Path) -> None:
    """As OpenVINO keeps them; weights are those of the file."""
    made = made_by_tools("dynamic", tmp_path)
    materials = materials_of(source_of(made), tmp_path)
    held = {each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(made).graph.initializer}
    names = [name.removesuffix("_quantized") for name in held if name.endswith("_quantized")]
    assert len(names) == 2
    first, second = (
        (held[f"{name}_quantized"].astype(np.float32) - held[f"{name}_zero_point"]) * held[f"{name}_scale"]
        for name in names
    )
    x = materials.workload("inputs").inputs["x"]
    hidden = np.maximum(x @ first + held["shift"], 0)
    checked(materials, hidden @ second)
    with pytest.raises(answers.OtherWork):
        checked(materials, hidden @ (1.05 * second))


def in_halves(path: Path, kind: int, dtype: Any) -> Path:
    """Write the two layers with weights and arithmetic in sixteen bits, and ends in float32."""
    model = onnx.load(two_layers(path.with_name("float.onnx")))
    graph = model.graph
    for tensor in graph.initializer:
        array = onnx.numpy_helper.to_array(tensor).astype(dtype)
        tensor.CopyFrom(onnx.helper.make_tensor(tensor.name, kind, array.shape, array.tobytes(), raw=True))
    graph.node[0].input[0], graph.node[-1].output[0] = "x.half", "y.half"
    nodes = [onnx.helper.make_node("Cast", ["x"], ["x.half"], to=kind), *graph.node]
    nodes.append(onnx.helper.make_node("Cast", ["y.half"], ["y"], to=FLOAT))
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(("kind", "smallest_mistake"), [(FLOAT16, 0.01), (BFLOAT16, 0.05)])
def test_sixteen_bits_are_right_in_their_own_type_and_in_float32_and_wrong_with_another_scale(
    kind: int, smallest_mistake: float, tmp_path: Path
) -> None:
    import ml_dtypes

    dtype = np.float16 if kind == FLOAT16 else ml_dtypes.bfloat16
    materials = materials_of(source_of(in_halves(tmp_path / "m.onnx", kind, dtype)), tmp_path)
    x, held = materials.workload("inputs").inputs["x"], materials.weights

    def answer(half: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        hidden = np.maximum(half(half(half(x) @ held["first"]) + held["shift"]), 0)
        return half(hidden @ held["second"])

    def rounded(array: np.ndarray) -> np.ndarray:
        return array.astype(dtype).astype(np.float32)

    checked(materials, answer(rounded))
    checked(materials, answer(lambda array: array))
    with pytest.raises(OtherWork):
        checked(materials, answer(rounded) * np.float32(1 + smallest_mistake))
    if kind == FLOAT16:
        with pytest.raises(OtherWork):
            checked(materials, answer(lambda array: array.astype(ml_dtypes.bfloat16).astype(np.float32)))


def test_a_file_of_few_bits_is_raced_in_them_alone(quantized: Materials, tmp_path: Path) -> None:
    _, bundle = opened(source_of(two_layers(tmp_path / "float.onnx")), tmp_path)
    assert len(bundle.spec.precisions) > 1
    assert all(route.precisions == ("fp32",) for route in bundle_routes(quantized) if not route.why_not)


def bundle_routes(materials: Materials) -> list[Any]:
    from fairlap.models.sources.bundle import bundle_in

    return list(bundle_in(materials.folder).routes.values())
