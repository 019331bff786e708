"""Each operator of LiteRT that is translated to ONNX answers in float64 what LiteRT's reference kernels answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.sources.litert_files.control_flow import CONTROL_FLOW
from fairlap.models.sources.litert_files.kernels import Kernels
from fairlap.models.sources.litert_files.list_updates import SET_ROW
from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.onnx_of_litert import onnx_model
from fairlap.models.sources.litert_files.operation import LIMITS, ONE_VALUE
from fairlap.models.sources.litert_files.operators import TRANSLATIONS
from fairlap.models.sources.litert_files.recurrent import RECURRENT
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph
from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference
from machine_marks import needs
from onnx_files import drawn
from quantized_tflite_files import one_operator_in_steps
from tflite_files import one_operator

needs("ai_edge_litert", "onnx")

SAME, VALID = {"padding": 0}, {"padding": 1}
IMAGE = (2, 7, 6, 4)
TWO = {"strideH": 2, "strideW": 2}
ONE = {"strideH": 1, "strideW": 1}
WINDOW = {"filterHeight": 3, "filterWidth": 2}
KERNEL, BY_CHANNEL = drawn(5, 3, 2, 4), drawn(1, 3, 2, 8)
POSITIVE = {"LOG", "POW", "SQRT", "RSQRT"}


def whole(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def _slices(**options: int) -> dict[str, Any]:
    return {"of": "StridedSlice", **options}


# The operator, what it is given (sizes of inputs, and constants), the size of its result, and its options.
CASES: list[tuple[str, list[Any], tuple[int, ...], dict[str, Any]]] = [
    ("CONV_2D", [IMAGE, KERNEL, drawn(5)], (2, 4, 3, 5), {"of": "Conv2D", **SAME, **TWO}),
    ("CONV_2D", [IMAGE, KERNEL, drawn(5)], (2, 3, 3, 5),
     {"of": "Conv2D", **VALID, **TWO, "fusedActivationFunction": 1}),
    ("CONV_2D", [IMAGE, KERNEL, drawn(5)], (2, 7, 6, 5),
     {"of": "Conv2D", **SAME, **ONE, "dilationHFactor": 2, "dilationWFactor": 3, "fusedActivationFunction": 3}),
    ("CONV_2D", [IMAGE, drawn(6, 3, 3, 2), drawn(6)], (2, 7, 6, 6), {"of": "Conv2D", **SAME, **ONE}),
    ("DEPTHWISE_CONV_2D", [IMAGE, BY_CHANNEL, drawn(8)], (2, 4, 3, 8),
     {"of": "DepthwiseConv2D", **SAME, **TWO, "depthMultiplier": 2}),
    ("DEPTHWISE_CONV_2D", [IMAGE, BY_CHANNEL[..., :4], drawn(4)], (2, 3, 4, 4),
     {"of": "DepthwiseConv2D", **VALID, **ONE, "depthMultiplier": 1, "dilationHFactor": 2, "dilationWFactor": 2}),
    ("TRANSPOSE_CONV", [whole(2, 14, 11, 5), KERNEL, (2, 7, 6, 4), drawn(5)], (2, 14, 11, 5),
     {"of": "TransposeConv", **SAME, **TWO}),
    ("TRANSPOSE_CONV", [whole(2, 15, 12, 5), KERNEL, (2, 7, 6, 4)], (2, 15, 12, 5),
     {"of": "TransposeConv", **VALID, **TWO}),
    *(
        (name, [IMAGE], size, {"of": "Pool2D", **padding, **TWO, **WINDOW})
        for name in ("MAX_POOL_2D", "AVERAGE_POOL_2D")
        for padding, size in ((SAME, (2, 4, 3, 4)), (VALID, (2, 3, 3, 4)))
    ),
    *(
        (name, [IMAGE, whole(*size)], (2, *size, 4), {"of": kind, **places})
        for name, kind in (
            ("RESIZE_BILINEAR", "ResizeBilinear"),
            ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor"),
        )
        for places in ({}, {"alignCorners": True}, {"halfPixelCenters": True})
        for size in ((14, 9), (4, 4))
    ),
    ("DEPTH_TO_SPACE", [(2, 3, 5, 8)], (2, 6, 10, 2), {"of": "DepthToSpace", "blockSize": 2}),
    ("SPACE_TO_DEPTH", [(2, 6, 4, 3)], (2, 3, 2, 12), {"of": "SpaceToDepth", "blockSize": 2}),
    ("FULLY_CONNECTED", [(2, 3, 6), drawn(5, 6), drawn(5)], (6, 5), {}),
    ("BATCH_MATMUL", [(2, 3, 4), (2, 5, 4)], (2, 3, 5), {"of": "BatchMatMul", "adjY": True}),
    ("SOFTMAX", [(3, 5)], (3, 5), {"of": "Softmax", "beta": 2.5}),
    ("RESHAPE", [(2, 6), whole(3, 4)], (3, 4), {}),
    ("SQUEEZE", [(2, 1, 6)], (2, 6), {}),
    ("EXPAND_DIMS", [(2, 6), np.array(1, np.int32)], (2, 1, 6), {}),
    ("PAD", [(2, 3), np.array([[1, 0], [2, 3]], np.int32)], (3, 8), {}),
    ("PADV2", [(2, 3), np.array([[1, 0], [2, 3]], np.int32), np.array([0.5], np.float32)], (3, 8), {}),
    ("MIRROR_PAD", [(4, 5), np.array([[1, 2], [3, 0]], np.int32)], (7, 8), {"of": "MirrorPad"}),
    ("CONCATENATION", [(2, 3), (2, 4), drawn(2, 1)], (2, 8), {"of": "Concatenation", "axis": -1}),
    ("PACK", [(2, 3), (2, 3)], (2, 2, 3), {"of": "Pack", "valuesCount": 2, "axis": 1}),
    ("STRIDED_SLICE", [(5, 6, 4), whole(1, 4, 0), whole(4, 0, 4), whole(2, -1, 1)], (2, 4, 4), _slices()),
    ("STRIDED_SLICE", [(5, 6, 4), whole(1, 4, 2), whole(4, 0, 3), whole(1, -2, 1)], (5, 3), _slices(
        beginMask=1, endMask=3, shrinkAxisMask=4)),
    ("STRIDED_SLICE", [(5, 6), whole(-1), whole(0), whole(1)], (6,), _slices(shrinkAxisMask=1)),
    ("SLICE", [(5, 6), whole(1, 2), whole(3, -1)], (3, 4), {}),
    ("TRANSPOSE", [(2, 3, 4), whole(2, 0, 1)], (4, 2, 3), {}),
    *(
        (name, [(2, 3, 4), whole(0, 2)], (1, 3, 1) if keeps else (3,), {"of": "Reducer", "keepDims": keeps})
        for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
        for keeps in (True, False)
    ),
    ("GATHER", [(5, 6), whole(3, 0, 3)], (3, 6), {"of": "Gather", "axis": 0}),
    ("REVERSE_V2", [(2, 3, 4), whole(1)], (2, 3, 4), {}),
    ("LEAKY_RELU", [(3, 4)], (3, 4), {"of": "LeakyRelu", "alpha": 0.3}),
    ("PRELU", [IMAGE, drawn(1, 1, 4)], IMAGE, {}),
    ("SQUARED_DIFFERENCE", [(3, 4), drawn(4)], (3, 4), {}),
    ("ADD", [(3, 4), drawn(4)], (3, 4), {"of": "Add", "fusedActivationFunction": 2}),
    ("MUL", [(3, 4), (1, 4)], (3, 4), {"of": "Mul", "fusedActivationFunction": 1}),
    ("SUB", [drawn(4), (3, 4)], (3, 4), {"of": "Sub"}),
    ("DIV", [(3, 4), np.abs(drawn(3, 4)) + 1], (3, 4), {"of": "Div"}),
    ("MAXIMUM", [(3, 4), drawn(4)], (3, 4), {}),
    ("MINIMUM", [(3, 4), drawn(4)], (3, 4), {}),
    ("POW", [(3, 4), np.array([2, 0.5, 3, -1], np.float32)], (3, 4), {}),
    ("CAST", [(3, 4)], (3, 4), {"of": "Cast", "outDataType": 2, "result_type": "int32"}),
    ("SELECT_V2", [("bool", 3, 4), (3, 4), drawn(4)], (3, 4), {}),
    ("LOGICAL_NOT", [("bool", 3, 4)], (3, 4), {"result_type": "bool"}),
    *(
        (name, [(3, 4), (3, 4)], (3, 4), {"result_type": "bool"})
        for name in ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    ),
    *(
        (name, [("bool", 3, 4), np.array([True, False, True, False])], (3, 4), {"result_type": "bool"})
        for name in ("LOGICAL_AND", "LOGICAL_OR")
    ),
    *((name, [(3, 4)], (3, 4), {}) for name in (*ONE_VALUE, *LIMITS, "RSQRT", "SQUARE") if name != "LOGICAL_NOT"),
]  # fmt: skip


def drawn_for(graph: TfliteGraph, name: str, *, positive: bool) -> np.ndarray:
    tensor = graph.inputs[name]
    found = 3 * drawn(*(size or 1 for size in graph.sizes(tensor)))
    return np.abs(found) + 0.1 if positive else (found > 0 if graph.dtype(tensor) == "bool" else found)


def answers(graph: TfliteGraph, inputs: Mapping[str, np.ndarray], scratch: Path) -> tuple[dict[str, Any], Any]:
    """Of LiteRT's kernels, and of the graph in ONNX in float64."""
    kernels = Kernels(graph, {name: array.dtype.name for name, array in inputs.items()})
    (scratch / "m.onnx").write_bytes(onnx_model(graph).SerializeToString())
    loaded, forward = imported_reference(scratch / "m.onnx")
    found = forward(
        {name: array.astype(np.float64) for name, array in loaded.weights.items()},
        {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in inputs.items()},
    )
    return kernels(graph.weights(), inputs), found


@pytest.mark.parametrize(
    ("kind", "given", "result", "options"), CASES, ids=[f"{number} {case[0]}" for number, case in enumerate(CASES)]
)
def test_an_operator_answers_as_litert_does(
    tmp_path: Path, kind: str, given: list[Any], result: tuple[int, ...], options: dict[str, Any]
) -> None:
    graph = TfliteGraph(one_operator(tmp_path / "m.tflite", kind, given, result, **options).read_bytes())
    inputs = {name: drawn_for(graph, name, positive=kind in POSITIVE) for name in graph.inputs}
    own_answers, found_answers = answers(graph, inputs, tmp_path)
    (own,), (found,) = own_answers.values(), found_answers.values()
    assert own.shape == found.shape == result
    np.testing.assert_allclose(own, found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "given", "results", "options"),
    [
        ("SPLIT", [np.array(-1, np.int32), (3, 6)], [(3, 2)] * 3, {"of": "Split", "numSplits": 3}),
        ("SPLIT_V", [(3, 6), whole(1, 5), np.array(1, np.int32)], [(3, 1), (3, 5)], {"of": "SplitV", "numSplits": 2}),
        ("UNPACK", [(3, 2, 4)], [(3, 4)] * 2, {"of": "Unpack", "num": 2, "axis": 1}),
    ],
)
def test_an_operator_of_several_results_answers_as_litert_does(
    tmp_path: Path, kind: str, given: list[Any], results: list[Any], options: dict[str, Any]
) -> None:
    graph = TfliteGraph(one_operator_in_steps(tmp_path / "m.tflite", kind, given, results, **options).read_bytes())
    inputs = {name: drawn_for(graph, name, positive=False) for name in graph.inputs}
    own, found = answers(graph, inputs, tmp_path)
    assert [own[name].shape for name in graph.outputs] == results
    for name in graph.outputs:
        np.testing.assert_array_equal(own[name], found[name])


def test_every_translation_is_tried() -> None:
    """Those of recurrences, and of steps, in other files."""
    elsewhere = {*CONTROL_FLOW, *RECURRENT, SET_ROW, "DEQUANTIZE", "QUANTIZE", "SPLIT", "SPLIT_V", "UNPACK"}
    assert {case[0] for case in CASES} == set(TRANSLATIONS) - elsewhere


@pytest.mark.parametrize(
    ("kind", "given", "result", "options"),
    [
        ("MIRROR_PAD", [(4, 5), np.array([[1, 2], [3, 0]], np.int32)], (7, 8), {"of": "MirrorPad", "mode": 1}),
        ("STRIDED_SLICE", [(5,), whole(0), whole(4), whole(1)], (1, 5), _slices(newAxisMask=1)),
        ("L2_NORMALIZATION", [(3, 4)], (3, 4), {"of": "L2Norm"}),
        ("FULLY_CONNECTED", [(2, 6), (5, 6)], (2, 5), {}),
        ("MUL", [(3, 4), (1, 4)], (3, 4), {"of": "Mul", "fusedActivationFunction": 4}),
    ],
    ids=["repeats the edge", "a new axis", "unknown", "computed weights", "an activation that kernels lack"],
)
def test_what_has_no_translation_is_named(
    tmp_path: Path, kind: str, given: list[Any], result: tuple[int, ...], options: dict[str, Any]
) -> None:
    graph = TfliteGraph(one_operator(tmp_path / "m.tflite", kind, given, result, **options).read_bytes())
    with pytest.raises(Untranslated, match=kind):
        onnx_model(graph)
