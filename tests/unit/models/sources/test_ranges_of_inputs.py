"""What is drawn for an input of integers follows from what the graph does with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.bundle import inputs_file, reference_file
from fairlap.models.sources.onnx_graphs.ranges import LOOPS
from fairlap.models.spec import Integers, Uniform
from fairlap.request.fields.source import range_in
from onnx_files import code_of, one_node, opened, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9
TABLE = np.arange(50, dtype=np.float32).reshape(25, 2)
node = onnx.helper.make_node


def graph_of(
    path: Path, nodes: Sequence[Any], constants: dict[str, Any], shape: Sequence[int] = (2, 8), output: int = FLOAT
) -> Path:
    """Of one input, x in int64; the last node gives the output ``out``."""
    helper = onnx.helper
    arrays = [onnx.numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    inputs = [helper.make_tensor_value_info("x", INT64, list(shape))]
    outputs = [helper.make_tensor_value_info("out", output, None)]
    model = helper.make_model(
        helper.make_graph(nodes, "graph", inputs, outputs, arrays), opset_imports=[helper.make_opsetid("", 18)]
    )
    model.ir_version = 9
    onnx.save(model, path)
    return path


def one_hot_by_equal() -> tuple[list[Any], dict[str, Any]]:
    """As tf2onnx and jax2tf write it: the numbers are computed from a constant."""
    return [
        node("Unsqueeze", ["x", "last"], ["column"]),
        node("Cast", ["column"], ["narrow"], to=INT32),
        node("Reshape", ["numbers", "shape"], ["row"]),
        node("Equal", ["narrow", "row"], ["equal"]),
        node("Cast", ["equal"], ["out"], to=FLOAT),
    ], {"last": np.array([2]), "numbers": np.arange(257, dtype=np.int32), "shape": np.array([1, 1, 257])}


def one_hot() -> tuple[list[Any], dict[str, Any]]:
    return [node("OneHot", ["x", "depth", "values"], ["out"])], {
        "depth": np.array(10),
        "values": np.array([0, 1], np.float32),
    }


def shifted_lookup() -> tuple[list[Any], dict[str, Any]]:
    """Index 0 is for what is missing: the input counts from -1."""
    return [node("Add", ["x", "one"], ["index"]), node("Gather", ["table", "index"], ["out"])], {
        "one": np.array(1),
        "table": TABLE,
    }


def clipped() -> tuple[list[Any], dict[str, Any]]:
    return [node("Clip", ["x", "low", "high"], ["index"]), node("Cast", ["index"], ["out"], to=FLOAT)], {
        "low": np.array(-3),
        "high": np.array(7),
    }


def index_from_the_end() -> tuple[list[Any], dict[str, Any]]:
    return [
        node("Less", ["x", "zero"], ["negative"]),
        node("Add", ["x", "rows"], ["turned"]),
        node("Where", ["negative", "turned", "x"], ["index"]),
        node("Gather", ["table", "index"], ["out"]),
    ], {"zero": np.array(0), "rows": np.array(25), "table": TABLE}


def padding() -> tuple[list[Any], dict[str, Any]]:
    return [node("Equal", ["x", "zero"], ["padded"]), node("Cast", ["padded"], ["out"], to=FLOAT)], {
        "zero": np.array(0)
    }


def threshold() -> tuple[list[Any], dict[str, Any]]:
    return [node("Greater", ["x", "limit"], ["above"]), node("Cast", ["above"], ["out"], to=FLOAT)], {
        "limit": np.array(40)
    }


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (one_hot_by_equal, Integers(0, 257, required=False)),
        (one_hot, Integers(0, 10)),
        (shifted_lookup, Integers(-1, 24)),
        (clipped, Integers(-3, 8, required=False)),
        (index_from_the_end, Integers(0, 25)),
        (padding, Integers(0, 2, required=False)),
        (threshold, Integers(39, 42, required=False)),
    ],
)
def test_integers_are_drawn_from_what_the_model_distinguishes(tmp_path: Path, made: Any, expected: Integers) -> None:
    nodes, constants = made()
    folder, bundle = opened(source_of(graph_of(tmp_path / "m.onnx", nodes, constants)), tmp_path)
    assert bundle.spec.inputs[0].fill == expected
    drawn = safetensors.read(inputs_file(folder, "inputs"))["x"]
    assert expected.low <= drawn.min() < drawn.max() < expected.high


def test_integers_that_are_compared_but_index_nothing_may_be_given_outside_of_the_range(tmp_path: Path) -> None:
    nodes, constants = one_hot_by_equal()
    path = graph_of(tmp_path / "m.onnx", nodes, constants)
    given = np.arange(1000, 1016).reshape(2, 8)
    given[0] = np.arange(8)
    np.save(tmp_path / "x.npy", given)
    folder, _ = opened(source_of(path, inputs=str(tmp_path / "x.npy")), tmp_path)
    np.testing.assert_array_equal(safetensors.read(inputs_file(folder, "inputs"))["x"], given)


def test_floats_are_drawn_evenly_from_a_range_that_is_asked_for(tmp_path: Path) -> None:
    path = one_node(tmp_path / "m.onnx", onnx.helper.make_node("Relu", ["x"], ["out"]), {"x": (FLOAT, [4, 64])})
    folder, bundle = opened(source_of(path, ranges=(range_in("x:0..255.5"),)), tmp_path)
    assert bundle.spec.inputs[0].fill == Uniform(0, 255.5)
    drawn = safetensors.read(inputs_file(folder, "inputs"))["x"]
    assert 0 <= drawn.min() < 30
    assert 220 < drawn.max() <= 255.5


@pytest.mark.slow_but("nodes1")
@pytest.mark.parametrize(
    ("nodes", "steps"),
    [
        ([node("ReverseSequence", ["data", "x"], ["out"])], (5, 2)),
        ([node("ReverseSequence", ["data", "x"], ["out"], time_axis=1, batch_axis=0)], (2, 5)),
        (
            [
                node("Cast", ["x"], ["narrow"], to=INT32),
                node("GRU", ["data", "w", "r", "", "narrow"], ["", "out"], hidden_size=4),
            ],
            (5, 2),
        ),
    ],
)
def test_lengths_of_sequences_are_within_them(tmp_path: Path, nodes: list[Any], steps: tuple[int, int]) -> None:
    longest = 5
    rng = np.random.default_rng(0)
    sizes = {"data": (*steps, 3), "w": (1, 12, 3), "r": (1, 12, 4)}
    constants = {name: rng.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    path = graph_of(tmp_path / "m.onnx", nodes, constants, shape=[2])
    _, bundle = opened(source_of(path), tmp_path)
    assert bundle.spec.inputs[0].fill == Integers(1, longest + 1)
    np.save(tmp_path / "x.npy", np.array([longest, longest + 1]))
    assert code_of(source_of(path, inputs=str(tmp_path / "x.npy")), tmp_path) == "E_SOURCE_INPUTS"
    assert code_of(source_of(path, ranges=(range_in(f"x:1..{longest + 1}"),)), tmp_path) == "E_SHAPES"


def test_a_broken_range_of_integers_is_refused(tmp_path: Path) -> None:
    nodes, constants = padding()
    path = graph_of(tmp_path / "m.onnx", nodes, constants)
    assert code_of(source_of(path, ranges=(range_in("x:0.5..3"),)), tmp_path) == "E_SHAPES"


def test_the_count_of_a_loop_is_more_than_once_and_not_many_times(tmp_path: Path) -> None:
    helper = onnx.helper
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go on"], ["still"]), helper.make_node("Add", ["sum", "sum"], ["doubled"])],
        "body",
        [value("number", INT64, []), value("go on", BOOL, []), value("sum", FLOAT, [2])],
        [value("still", BOOL, []), value("doubled", FLOAT, [2])],
    )
    nodes = [helper.make_node("Loop", ["x", "", "start"], ["out"], body=body)]
    path = graph_of(tmp_path / "m.onnx", nodes, {"start": np.ones(2, np.float32)}, shape=[])
    folder, bundle = opened(source_of(path), tmp_path)
    assert bundle.spec.inputs[0].fill == Integers(LOOPS.start, LOOPS.stop, required=False)
    count = int(safetensors.read(inputs_file(folder, "inputs"))["x"])
    assert safetensors.read(reference_file(folder, "inputs"))["out"].tolist() == [2.0**count] * 2
