"""What counts as right in fp8: graphs as fairlap writes them do, and those with one mistake in a scale do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.checks.fp8_answers import InFp8
from fairlap.models.fp8_graphs.fp8_numbers import rounded_to_fp8
from fairlap.models.fp8_graphs.quantized_graph import in_fp8
from fairlap.race.equal_work.answers import OtherWork, array_errors, require_right
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.request.work import Work
from onnx_files import drawn, materials_of, source_of

onnx: Any = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")

WIDTH, BATCH = 48, 8
BUILT_IN = ("mlp", "convnet", "attention")


def two_layers(path: Path) -> Path:
    """Write two square products with a Relu between them; the channels of weights differ in size, as trained ones."""
    make, helper = onnx.helper.make_node, onnx.helper
    sizes = np.geomspace(0.1, 3, WIDTH).astype(np.float32)
    arrays = {name: drawn(WIDTH, WIDTH, seed=seed) * sizes for seed, name in enumerate(("first", "second"))}
    nodes = [
        make("MatMul", ["x", "first"], ["product"]),
        make("Relu", ["product"], ["hidden"]),
        make("MatMul", ["hidden", "second"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [BATCH, WIDTH]) for name in "xy"]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "two layers", ends[:1], ends[1:], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Materials, Any]:
    """Open a model of a user's, and quantize it as a contestant does."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        file = two_layers(folder / "m.onnx")
        materials = materials_of(source_of(file), folder, "fp8")
        return materials, quantized(materials, onnx.load(file))


def quantized(materials: Materials, model: Any) -> Any:
    sets = [safetensors.read(file) for file in materials.calibration_files]
    assert len(sets) >= 8
    return in_fp8(model, sets).model


def require_right_answers(materials: Materials, model: Any) -> None:
    """Compare the answers of ONNX Runtime, which computes in float32 what fp8 can hold, as those of a contestant."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    for which in ("inputs", "changed", "unseen"):
        if not materials.inputs_file(which).is_file():
            continue
        found = dict(zip(names, session.run(None, dict(materials.workload(which).inputs)), strict=True))
        require_right(array_errors(materials, found, which, "before"), {})


@pytest.mark.slow_but("convnet")
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_model_in_fp8_is_right_and_off_by_more_than_float32_allows(name: str) -> None:
    materials = materials_for(Work(name, 2, precision="fp8"), 0)
    work = materials.workload("inputs")
    model = work.implementation("onnx").build(materials.weights, 2)
    made = quantized(materials, model)
    require_right_answers(materials, made)
    plain = materials_for(Work(name, 2), 0)
    with pytest.raises(OtherWork):
        require_right_answers(plain, made)


def test_a_users_model_in_fp8_is_right(own: tuple[Materials, Any]) -> None:
    require_right_answers(*own)


def scaled(model: Any, node: Any, factor: float) -> None:
    """Give one node another scale than those that share it."""
    held = {each.name: each for each in model.graph.initializer}
    wrong = onnx.numpy_helper.to_array(held[node.input[1]]) * np.float32(factor)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(wrong, np.float32), "a wrong scale"))
    node.input[1] = "a wrong scale"


def nodes_of(model: Any, kind: str, *, of_weights: bool = False) -> list[Any]:
    quantized_here = {node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    nodes = [node for node in model.graph.node if node.op_type == kind]
    return nodes if kind == "QuantizeLinear" else [n for n in nodes if (n.input[0] not in quantized_here) == of_weights]


def read_with_twice_the_scale(model: Any) -> None:
    scaled(model, nodes_of(model, "DequantizeLinear")[-1], 2)


def weights_with_half_the_scale(model: Any) -> None:
    scaled(model, nodes_of(model, "DequantizeLinear", of_weights=True)[-1], 0.5)


def saturated(model: Any) -> None:
    """Give both nodes of a pair an eighth of the range, so that what is larger is cut off."""
    quantize = nodes_of(model, "QuantizeLinear")[-1]
    [read] = [node for node in nodes_of(model, "DequantizeLinear") if node.input[0] == quantize.output[0]]
    scaled(model, quantize, 1 / 8)
    read.input[1] = quantize.input[1]


def overflowing(model: Any) -> None:
    """Without saturation, what is beyond 448 becomes NaN."""
    quantize = nodes_of(model, "QuantizeLinear")[-1]
    scaled(model, quantize, 1 / 2)
    quantize.attribute.append(onnx.helper.make_attribute("saturate", 0))


def scales_along_the_other_axis(model: Any) -> None:
    for node in nodes_of(model, "DequantizeLinear", of_weights=True):
        [axis] = [each for each in node.attribute if each.name == "axis"]
        axis.i = 1 - axis.i


def another_products_weights(model: Any) -> None:
    first, second = nodes_of(model, "DequantizeLinear", of_weights=True)
    first.input[:], second.input[:] = list(second.input), list(first.input)


WRONG: tuple[Callable[[Any], None], ...] = (
    read_with_twice_the_scale,
    weights_with_half_the_scale,
    saturated,
    overflowing,
    scales_along_the_other_axis,
    another_products_weights,
)


@pytest.mark.parametrize("spoil", WRONG)
def test_one_mistake_in_fp8_disqualifies(own: tuple[Materials, Any], spoil: Callable[[Any], None]) -> None:
    materials, made = own
    spoilt = onnx.ModelProto()
    spoilt.CopyFrom(made)
    spoil(spoilt)
    onnx.checker.check_model(spoilt)
    with pytest.raises(OtherWork) as wrong:
        require_right_answers(materials, spoilt)
    assert wrong.value.code == "E_OUTPUT"


def test_weights_are_rounded_in_pieces_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    array = drawn(7, 11, seed=3)
    scale = np.abs(array).max() / 448
    whole = rounded_to_fp8(array / scale) * scale
    monkeypatch.setattr("fairlap.models.checks.fp8_answers._ROUNDED_AT_ONCE", 10)
    given = {"w": array, "turned": array.T, "bias": array[0], "ids": np.arange(4), "zeros": np.zeros((2, 2))}
    found = InFp8(given, 1.0)
    np.testing.assert_allclose(found["w"], whole, rtol=1e-6)
    np.testing.assert_array_equal(found["turned"], found["w"].T)
    assert all(found[name] is given[name] for name in ("bias", "ids", "zeros"))
    assert found["w"].dtype == np.float32
    assert np.array_equal(array, drawn(7, 11, seed=3)), "what is given stays as it is"


def test_float32_is_right_in_fp8_too(own: tuple[Materials, Any]) -> None:
    """A contestant that rounds less is no worse; its settings say what it computed in, and are checked."""
    materials, _ = own
    errors = array_errors(materials, {"y": materials.reference("inputs")["y"].astype(np.float32)}, "inputs", "before")
    require_right(errors, {})
