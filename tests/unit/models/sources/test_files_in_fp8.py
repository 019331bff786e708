"""Files in fp8: the float64 reference takes the steps of the file, and right runtimes agree with it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.fp8_graphs.quantized_graph import in_fp8
from fairlap.models.onnx_import import build, load_graph
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from margins import by_onnxruntime, by_torch
from onnx_files import drawn, materials_of, opened, source_of

onnx: Any = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, FP8 = 1, 17
SHAPE = (8, 64)


def two_layers() -> Any:
    make, helper = onnx.helper.make_node, onnx.helper
    nodes = [
        make("MatMul", ["x", "first"], ["product"]),
        make("Relu", ["product"], ["hidden"]),
        make("MatMul", ["hidden", "second"], ["y"]),
    ]
    arrays = {"first": drawn(64, 128), "second": drawn(128, 16, seed=1)}
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    ends = [helper.make_tensor_value_info(name, FLOAT, [8, size]) for name, size in (("x", 64), ("y", 16))]
    graph = helper.make_graph(nodes, "two layers", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def with_zero_points(model: Any) -> Any:
    """Name the type of steps by zero points, as opset 19 does, in place of an attribute."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    held = {each.name: each for each in made.graph.initializer}
    for node in made.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            shape, name = list(held[node.input[1]].dims), f"zeros of {node.output[0]}"
            content = bytes(int(np.prod(shape)))
            made.graph.initializer.append(onnx.helper.make_tensor(name, FP8, shape, content, raw=True))
            node.input.append(name)
            kept = [each for each in node.attribute if each.name != "output_dtype"]
            del node.attribute[:]
            node.attribute.extend(kept)
    onnx.checker.check_model(made)
    return made


@pytest.fixture(scope="module")
def in_eight_bits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Materials, Any]:
    folder = tmp_path_factory.mktemp("fp8")
    rng = np.random.default_rng(4)
    made = in_fp8(two_layers(), [{"x": rng.standard_normal(SHAPE).astype(np.float32)} for _ in range(4)]).model
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        onnx.save(made, folder / "m.onnx")
        return materials_of(source_of(folder / "m.onnx"), folder), made


def checked(materials: Materials, answer: np.ndarray) -> None:
    errors = answers.array_errors(materials, {"y": answer}, "inputs", "before")
    answers.require_right(errors, {})


def test_right_runtimes_are_right_and_the_row_names_the_type(
    in_eight_bits: tuple[Materials, Any], tmp_path: Path
) -> None:
    materials, model = in_eight_bits
    inputs = materials.workload("inputs").inputs
    assert [notice.code for notice in materials.notices if "float8_e4m3fn" in notice.text] == ["W_FILE_PRECISION"]
    assert materials.spec.precisions == ("fp32",)
    assert materials.tells_inputs_apart
    assert materials.weights["first/fp8"].dtype == np.float32
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(model)
    by_evaluator = evaluator.run(None, dict(inputs))[0]
    for found in (by_evaluator, by_onnxruntime(model, inputs)["y"]):
        checked(materials, found)
    if find_spec("torch") is not None:
        checked(materials, by_torch(model, inputs, tmp_path)["y"])


@pytest.mark.slow
@pytest.mark.parametrize("library", ["jax", "tensorflow"])
def test_the_importer_gives_the_same_numbers_in_other_libraries(
    library: Any, in_eight_bits: tuple[Materials, Any]
) -> None:
    pytest.importorskip(library, reason="`make test` installs it and runs this")
    materials, _ = in_eight_bits
    graph = load_graph(materials.folder / "model.onnx")
    imported = build(graph, library)
    found = imported(imported.prepare(graph.weights), materials.workload("inputs").inputs)
    checked(materials, np.asarray(found["y"]))


def test_zero_points_of_fp8_name_the_type_as_well(in_eight_bits: tuple[Materials, Any], tmp_path: Path) -> None:
    materials, model = in_eight_bits
    onnx.save(with_zero_points(model), tmp_path / "zeros.onnx")
    other = materials_of(source_of(tmp_path / "zeros.onnx"), tmp_path)
    np.testing.assert_array_equal(other.reference("inputs")["y"], materials.reference("inputs")["y"])


def spoilt_scale(model: Any) -> None:
    held = {each.name: each for each in model.graph.initializer}
    [*_, last] = [node for node in model.graph.node if node.op_type == "DequantizeLinear"]
    tensor = held[last.input[1]]
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * np.float32(1.03), tensor.name))


def without_relu(model: Any) -> None:
    [relu] = [node for node in model.graph.node if node.op_type == "Relu"]
    relu.op_type = "Identity"


def without_rounding(model: Any) -> None:
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            [read] = [each for each in model.graph.node if each.input[0] == node.output[0]]
            read.op_type, read.input[:] = "Identity", [node.input[0]]


@pytest.mark.parametrize("spoil", [spoilt_scale, without_relu, without_rounding])
def test_a_small_mistake_is_wrong(in_eight_bits: tuple[Materials, Any], spoil: Callable[[Any], None]) -> None:
    materials, model = in_eight_bits
    wrong = onnx.ModelProto()
    wrong.CopyFrom(model)
    spoil(wrong)
    with pytest.raises(OtherWork) as found:
        checked(materials, by_onnxruntime(wrong, materials.workload("inputs").inputs)["y"])
    assert found.value.code == "E_OUTPUT"


def test_fp8_that_makes_nan_of_large_numbers_is_not_imported(
    in_eight_bits: tuple[Materials, Any], tmp_path: Path
) -> None:
    _, model = in_eight_bits
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for node in other.graph.node:
        if node.op_type == "QuantizeLinear":
            node.attribute.append(onnx.helper.make_attribute("saturate", 0))
    onnx.save(other, tmp_path / "m.onnx")
    with pytest.raises(FairlapError, match="saturat"):
        build(load_graph(tmp_path / "m.onnx"), "numpy")


def test_what_fp8_allows_is_computed_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    onnx.save(two_layers(), tmp_path / "m.onnx")
    source = source_of(tmp_path / "m.onnx")
    assert "fp8" not in opened(source, tmp_path)[1].tolerances
    assert "fp8" in opened(source, tmp_path, fp8=True)[1].tolerances


def test_an_answer_without_products_is_allowed_what_float32_is_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    helper = onnx.helper
    ends = [helper.make_tensor_value_info(name, FLOAT, [8]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "no products", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    allowed = opened(source_of(tmp_path / "m.onnx"), tmp_path, fp8=True)[1].tolerances["fp8"]["y"]
    assert allowed.norm == 1e-3
    assert 0 < allowed.absolute < 1e-2
