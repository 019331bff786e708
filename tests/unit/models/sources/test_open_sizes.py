"""Sizes that an ONNX file leaves open, and nodes that are not in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.onnx_import.errors import SizesDoNotFit
from fairlap.models.sources.bundle import inputs_file, reference_file
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.fields.source import dims_in, shapes_in
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from onnx_files import BOUND, answers_by_hand, code_of, masked_lookup, one_node, opened, source_of, weights

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT = 1


def relu(path: Path, shape: Sequence[Any]) -> Path:
    return one_node(path, onnx.helper.make_node("Relu", ["x"], ["out"]), {"x": (FLOAT, list(shape))})


@pytest.mark.slow_but("unk__749")
@pytest.mark.parametrize("open_size", ["?", "-1", "unk__749", "", -1])
def test_sizes_without_a_name_are_not_equal(tmp_path: Path, open_size: Any) -> None:
    path = relu(tmp_path / "m.onnx", [open_size, 3, open_size])
    _, bundle = opened(source_of(path, shapes=shapes_in("x:2x3x5")), tmp_path)
    assert bundle.spec.inputs[0].shape == (2, 3, 5)


def test_a_size_of_0_is_an_open_one(tmp_path: Path) -> None:
    path = relu(tmp_path / "m.onnx", [0, 4])
    assert code_of(source_of(path), tmp_path) == "E_MODEL_DIMENSIONS"
    _, bundle = opened(source_of(path, batch=2), tmp_path)
    assert bundle.spec.inputs[0].shape == (2, 4)


@pytest.mark.slow_but("shape0")
@pytest.mark.parametrize(
    "shape", [["batch", 3, "?", "?"], ["batch", "sequence"], [None, 3], ["rows", "columns", "rows"]]
)
def test_the_refusal_has_a_line_that_binds_all_sizes_when_it_is_pasted(tmp_path: Path, shape: list[Any]) -> None:
    path = relu(tmp_path / "m.onnx", shape)
    with pytest.raises(FairlapError) as refused:
        opened(source_of(path), tmp_path)
    options = dict(re.findall(r"--(dims|shapes) ([^ ;]+)", str(refused.value)))
    assert options
    source = source_of(path, options.get("dims", ""), shapes=shapes_in(options.get("shapes", "")))
    _, bundle = opened(source, tmp_path)
    assert len(bundle.spec.inputs[0].shape) == len(shape)


@pytest.mark.parametrize(("longest", "example"), [(512, 128), (16, 16), (5, 4)])
def test_sizes_to_paste_are_those_that_the_model_takes(tmp_path: Path, longest: int, example: int) -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Shape", ["x"], ["length"], start=1, end=2),
        node("Slice", ["places", "start", "length"], ["own"]),
        node("Add", ["x", "own"], ["out"]),
    ]
    constants = {"places": np.ones((longest, 8), np.float32), "start": np.zeros(1, np.int64)}
    arrays = [onnx.numpy_helper.from_array(each, name) for name, each in constants.items()]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", FLOAT, ["batch", "length", 8])], [value("out", FLOAT, None)], arrays
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(FairlapError) as refused:
        opened(source_of(tmp_path / "m.onnx"), tmp_path)
    assert refused.value.code == "E_MODEL_DIMENSIONS"
    assert f"length={example}" in str(refused.value)


def test_a_name_for_a_size_without_one_is_answered_with_a_line_to_paste(tmp_path: Path) -> None:
    path = relu(tmp_path / "m.onnx", ["?", 2048])
    with pytest.raises(FairlapError) as refused:
        opened(source_of(path, "batch=8"), tmp_path)
    assert "--shapes x:1x2048" in str(refused.value)
    path = relu(tmp_path / "m.onnx", [2, 2048])
    with pytest.raises(FairlapError) as refused:
        opened(source_of(path, "batch=8"), tmp_path)
    assert "--shapes" not in str(refused.value)


def test_a_line_to_paste_gives_one_size_to_what_two_inputs_share(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Concat", ["x", "y"], ["out"], axis=1)
    path = one_node(tmp_path / "m.onnx", node, {"x": (FLOAT, ["batch", "?"]), "y": (FLOAT, ["batch", "length"])})
    with pytest.raises(FairlapError) as refused:
        opened(source_of(path), tmp_path)
    options = dict(re.findall(r"--(dims|shapes) ([^ ;]+)", str(refused.value)))
    opened(source_of(path, options["dims"], shapes=shapes_in(options["shapes"])), tmp_path)


def test_nodes_that_are_not_in_order_are_sorted(tmp_path: Path) -> None:
    model = onnx.load(masked_lookup(tmp_path / "m.onnx"))
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(model.graph.node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    (tmp_path / "reversed.onnx").write_bytes(model.SerializeToString())
    folder, _ = opened(source_of(tmp_path / "reversed.onnx", BOUND), tmp_path)
    inputs = safetensors.read(inputs_file(folder, "inputs"))
    held = {name: array.astype(np.float64) for name, array in weights().items()}
    expected = answers_by_hand(held, inputs["ids"], inputs["mask"])
    np.testing.assert_allclose(safetensors.read(reference_file(folder, "inputs"))["logits"], expected, rtol=1e-12)
    onnx.checker.check_model(folder / "model.onnx")


def test_nodes_that_use_their_own_results_are_refused(tmp_path: Path) -> None:
    path = one_node(tmp_path / "m.onnx", onnx.helper.make_node("Add", ["x", "out"], ["out"]), {"x": (FLOAT, [2])})
    assert code_of(source_of(path), tmp_path) == "E_MODEL_FILE"


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[str, str]:
    one, other = relu(tmp_path / "one.onnx", ["batch", 4]), relu(tmp_path / "other.onnx", ["batch", "length"])
    return str(one), str(other)


@pytest.mark.slow
def test_one_of_several_files_may_lack_a_dimension(two_files: tuple[str, str]) -> None:
    plan = plan_of(RaceRequest(models=two_files, contestants=Contestants("onnxruntime"), dims="batch=2,length=3"))
    assert [work.batch for work in plan.works] == [2, 2]
    assert all(work.source is not None and work.source.dims == dims_in("batch=2,length=3") for work in plan.works)


@pytest.mark.slow
def test_a_dimension_that_no_file_has_is_refused(two_files: tuple[str, str]) -> None:
    request = RaceRequest(models=two_files, contestants=Contestants("onnxruntime"), dims="batch=2,length=3,width=4")
    with pytest.raises(FairlapError) as refused:
        plan_of(request)
    assert refused.value.code == "E_MODEL_DIMENSIONS"
    assert "width" in str(refused.value)


def test_given_sizes_that_an_operator_cannot_take_are_said_to_be_the_cause(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Concat", ["x", "y"], ["out"], axis=1)
    path = one_node(tmp_path / "m.onnx", node, {"x": (FLOAT, ["left", 2]), "y": (FLOAT, ["right", 2])})
    opened(source_of(path, "left=3,right=3"), tmp_path)
    with pytest.raises(SizesDoNotFit, match="--shapes") as refused:
        opened(source_of(path, "left=3,right=4"), tmp_path)
    assert refused.value.code == "E_MODEL_DIMENSIONS"
    assert "x:3x2, y:4x2" in str(refused.value)
