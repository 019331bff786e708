"""Each operator of LiteRT that computes in steps answers in ONNX what LiteRT's reference kernels answer.

Those round in fixed-point numbers, so results may be a step off; how many are is asserted for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.sources.litert_files.agreement import Distance, distances, require_agreement
from fairlap.models.sources.litert_files.kernels import Kernels, kernels_for
from fairlap.models.sources.litert_files.list_updates import SET_ROW
from fairlap.models.sources.litert_files.onnx_graph import OnnxGraph, Untranslated
from fairlap.models.sources.litert_files.onnx_of_litert import keeps_steps, kinds_in_steps, onnx_model, read_by
from fairlap.models.sources.litert_files.operators import TRANSLATIONS
from fairlap.models.sources.litert_files.steps import Steps
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph
from machine_marks import needs
from quantized_tflite_files import InSteps, one_operator_in_steps

needs("ai_edge_litert", "onnx")

SAME, VALID = {"padding": 0}, {"padding": 1}
ONE, TWO = {"strideH": 1, "strideW": 1}, {"strideH": 2, "strideW": 2}
WINDOW = {"filterHeight": 2, "filterWidth": 2}
RANDOM = np.random.default_rng(0)


def weights(*shape: int, dtype: str = "int8") -> np.ndarray:
    low, high = (1, 256) if dtype == "uint8" else (-127, 128)
    return RANDOM.integers(low, high, shape).astype(dtype)


def scales(count: int) -> list[float]:
    return [0.002 * (1 + number % 5) for number in range(count)]


def bias(count: int, dtype: str = "int32") -> np.ndarray:
    return RANDOM.integers(-3000, 3000, count).astype(dtype)


def whole(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


IMAGE = InSteps((2, 9, 8, 4), 0.03, -5)
X = InSteps((40, 50), 0.04, 7)
SLICES: dict[str, Any] = {"of": "StridedSlice"}


def image(height: int, width: int, channels: int, scale: float = 0.05, zero: int = 4) -> InSteps:
    return InSteps((2, height, width, channels), scale, zero)


def like(value: InSteps, *shape: int) -> InSteps:
    return InSteps(shape or value.of, value.scale, value.zero, value.dtype)


def accumulated(count: int, dtype: str = "int32") -> InSteps:
    """Make a bias, whose own scale LiteRT does not read."""
    return InSteps(bias(count, dtype), 1e-4, 0, dtype)


# The operator, what it is given, its result, its options, and which share of the results is the same as in LiteRT.
CASES: list[tuple[str, list[Any], Any, dict[str, Any], float]] = [
    ("CONV_2D", [IMAGE, InSteps(weights(6, 3, 3, 4), scales(6)), accumulated(6)], image(5, 4, 6),
     {"of": "Conv2D", **SAME, **TWO, "fusedActivationFunction": 1}, 0.99),
    ("CONV_2D", [IMAGE, InSteps(weights(6, 3, 3, 4), 0.004), accumulated(6)], image(7, 6, 6),
     {"of": "Conv2D", **VALID, **ONE, "fusedActivationFunction": 3}, 0.99),
    ("CONV_2D", [InSteps((2, 9, 8, 4), 0.03, 120, "uint8"), InSteps(weights(6, 3, 3, 4, dtype="uint8"), 0.004, 131,
     "uint8"), accumulated(6)], InSteps((2, 9, 8, 6), 0.05, 99, "uint8"), {"of": "Conv2D", **SAME, **ONE}, 0.99),
    ("CONV_2D", [InSteps((2, 9, 8, 4), 1e-4, 0, "int16"), InSteps(weights(6, 3, 3, 4), scales(6)),
     accumulated(6, "int64")], InSteps((2, 9, 8, 6), 3e-4, 0, "int16"), {"of": "Conv2D", **SAME, **ONE}, 0.85),
    ("DEPTHWISE_CONV_2D", [IMAGE, InSteps(weights(1, 3, 3, 8), scales(8), axis=3), accumulated(8)], image(9, 8, 8),
     {"of": "DepthwiseConv2D", **SAME, **ONE, "depthMultiplier": 2}, 0.99),
    ("TRANSPOSE_CONV", [whole(2, 18, 16, 5), InSteps(weights(5, 3, 3, 4), scales(5)), IMAGE, accumulated(5)],
     image(18, 16, 5), {"of": "TransposeConv", **SAME, **TWO}, 0.99),
    ("FULLY_CONNECTED", [X, InSteps(weights(6, 50), scales(6)), accumulated(6)], InSteps((40, 6), 0.1, -9), {}, 0.99),
    ("FULLY_CONNECTED", [InSteps((4, 5, 50), 0.04, 7), InSteps(weights(6, 50), 0.004), None],
     InSteps((20, 6), 0.1, -9), {}, 0.99),
    ("FULLY_CONNECTED", [InSteps((40, 50), 0.04, 100, "uint8"), InSteps(weights(6, 50, dtype="uint8"), 0.004, 128,
     "uint8"), accumulated(6)], InSteps((40, 6), 0.1, 90, "uint8"), {}, 0.99),
    ("BATCH_MATMUL", [InSteps((2, 9, 8), 0.03, 3), InSteps((2, 7, 8), 0.02, -4)], InSteps((2, 9, 7), 0.1, 5),
     {"of": "BatchMatMul", "adjY": True}, 0.98),
    ("ADD", [X, InSteps((40, 50), 0.02, -3)], InSteps((40, 50), 0.05, 2), {"of": "Add"}, 0.98),
    ("ADD", [InSteps((40, 50), 2e-4, 0, "int16"), InSteps((40, 50), 3e-4, 0, "int16")],
     InSteps((40, 50), 4e-4, 0, "int16"), {"of": "Add", "potScaleInt16": False}, 0.9),
    ("TANH", [InSteps((40, 50), 3e-4, 0, "int16")], InSteps((40, 50), 2.0**-15, 0, "int16"), {}, 0.6),
    ("SOFTMAX", [InSteps((40, 10), 3e-4, 0, "int16")], InSteps((40, 10), 2.0**-15, 0, "int16"),
     {"of": "Softmax", "beta": 1.0}, 0.3),
    ("SUB", [X, InSteps((50,), 0.02, -3)], InSteps((40, 50), 0.05, 2), {"of": "Sub"}, 0.98),
    ("MUL", [X, InSteps(weights(50), 0.02, -3)], InSteps((40, 50), 0.06, 2), {"of": "Mul"}, 0.99),
    ("SQUARED_DIFFERENCE", [X, InSteps((50,), 0.02, -3)], InSteps((40, 50), 0.4, -128), {}, 0.98),
    ("MAXIMUM", [X, like(X, 50)], like(X), {}, 1),
    ("MINIMUM", [X, like(X, 50)], like(X), {}, 1),
    *((name, [X, like(X)], (40, 50), {"result_type": "bool"}, 1)
      for name in ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")),
    ("SELECT_V2", [np.arange(2000).reshape(40, 50) % 3 == 0, X, like(X)], like(X), {}, 1),
    ("LOGISTIC", [InSteps((40, 50), 0.05, 3)], InSteps((40, 50), 1 / 256, -128), {}, 0.9),
    ("TANH", [InSteps((40, 50), 0.02, 3)], InSteps((40, 50), 1 / 128, 0), {}, 0.9),
    ("SOFTMAX", [InSteps((40, 10), 0.05, 3)], InSteps((40, 10), 1 / 256, -128), {"of": "Softmax", "beta": 1.0}, 0.9),
    ("HARD_SWISH", [InSteps((40, 50), 0.05, 3)], InSteps((40, 50), 0.03, -110), {}, 0.95),
    ("ELU", [InSteps((40, 50), 0.02, 3)], InSteps((40, 50), 0.02, -50), {}, 0.9),
    ("LEAKY_RELU", [X], InSteps((40, 50), 0.03, -40), {"of": "LeakyRelu", "alpha": 0.3}, 0.85),
    ("PRELU", [IMAGE, InSteps(weights(1, 1, 4), 0.01)], image(9, 8, 4, 0.03, -20), {}, 0.9),
    *((name, [X], InSteps((40, 50), 0.03, -40), {}, 0.9) for name in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")),
    ("EXP", [InSteps((40, 50), 0.01, 3)], InSteps((40, 50), 0.02, -128), {}, 0.9),
    ("LOG", [InSteps((40, 50), 0.01, -128)], InSteps((40, 50), 0.03, 80), {}, 0.9),
    ("ABS", [X], InSteps((40, 50), 0.05, -128), {}, 0.9),
    ("RSQRT", [InSteps((40, 50), 0.01, -128)], InSteps((40, 50), 0.05, -128), {}, 0.9),
    ("MEAN", [IMAGE, whole(1, 2)], InSteps((2, 4), 0.004, 2), {"of": "Reducer"}, 0.8),
    ("SUM", [IMAGE, whole(1)], InSteps((2, 8, 4), 0.4, 2), {"of": "Reducer"}, 0.9),
    ("REDUCE_PROD", [InSteps((20, 3), 0.02, 4), whole(1)], InSteps((20,), 0.03, 2), {"of": "Reducer"}, 0.8),
    ("REDUCE_MAX", [IMAGE, whole(1)], like(IMAGE, 2, 8, 4), {"of": "Reducer"}, 1),
    ("REDUCE_MIN", [IMAGE, whole(1)], like(IMAGE, 2, 8, 4), {"of": "Reducer"}, 1),
    ("MAX_POOL_2D", [IMAGE], like(IMAGE, 2, 5, 4, 4), {"of": "Pool2D", **SAME, **TWO, **WINDOW}, 1),
    ("AVERAGE_POOL_2D", [IMAGE], like(IMAGE, 2, 5, 4, 4), {"of": "Pool2D", **SAME, **TWO, **WINDOW}, 0.8),
    ("RESIZE_BILINEAR", [IMAGE, whole(14, 11)], like(IMAGE, 2, 14, 11, 4), {"of": "ResizeBilinear"}, 0.8),
    ("RESIZE_NEAREST_NEIGHBOR", [IMAGE, whole(14, 11)], like(IMAGE, 2, 14, 11, 4), {"of": "ResizeNearestNeighbor"}, 1),
    ("DEPTH_TO_SPACE", [IMAGE], like(IMAGE, 2, 18, 16, 1), {"of": "DepthToSpace", "blockSize": 2}, 1),
    ("SPACE_TO_DEPTH", [image(8, 6, 3)], image(4, 3, 12), {"of": "SpaceToDepth", "blockSize": 2}, 1),
    ("PAD", [X, np.array([[1, 0], [2, 3]], np.int32)], like(X, 41, 55), {}, 1),
    ("PADV2", [X, np.array([[1, 0], [2, 3]], np.int32), InSteps(np.array([55], np.int8), 0.04, 7)], like(X, 41, 55),
     {}, 1),
    ("MIRROR_PAD", [X, np.array([[1, 0], [2, 3]], np.int32)], like(X, 41, 55), {"of": "MirrorPad"}, 1),
    ("CONCATENATION", [X, like(X)], like(X, 80, 50), {"of": "Concatenation"}, 1),
    ("CONCATENATION", [InSteps((4, 50), 0.04, 100, "uint8"), InSteps((4, 50), 0.02, 90, "uint8")],
     InSteps((8, 50), 0.05, 95, "uint8"), {"of": "Concatenation"}, 0.9),
    ("RESHAPE", [X, whole(20, 100)], like(X, 20, 100), {}, 1),
    ("SQUEEZE", [like(X, 1, 50)], like(X, 50), {}, 1),
    ("EXPAND_DIMS", [X, np.array(1, np.int32)], like(X, 40, 1, 50), {}, 1),
    ("TRANSPOSE", [X, whole(1, 0)], like(X, 50, 40), {}, 1),
    ("GATHER", [InSteps(weights(30, 6), 0.04, 7), whole(3, 0, 3)], InSteps((3, 6), 0.04, 7), {"of": "Gather"}, 1),
    ("PACK", [X, like(X)], like(X, 2, 40, 50), {"of": "Pack", "valuesCount": 2}, 1),
    ("UNPACK", [like(X, 2, 50)], [like(X, 50)] * 2, {"of": "Unpack", "num": 2}, 1),
    ("SPLIT", [np.array(1, np.int32), X], [like(X, 40, 25)] * 2, {"of": "Split", "numSplits": 2}, 1),
    ("SPLIT_V", [X, whole(10, 40), np.array(1, np.int32)], [like(X, 40, 10), like(X, 40, 40)],
     {"of": "SplitV", "numSplits": 2}, 1),
    ("SLICE", [X, whole(1, 2), whole(3, -1)], like(X, 3, 48), {}, 1),
    ("STRIDED_SLICE", [X, whole(1, 40), whole(9, 0), whole(2, -1)], like(X, 4, 40), SLICES, 1),
    ("QUANTIZE", [(40, 50)], X, {"of": "Quantize"}, 1),
    ("QUANTIZE", [X], InSteps((40, 50), 0.03, 2, "uint8"), {"of": "Quantize"}, 0.9),
    ("DEQUANTIZE", [X], (40, 50), {"of": "Dequantize"}, 1),
    # Weights in steps and values in real numbers, which LiteRT rounds in each call.
    ("FULLY_CONNECTED", [(40, 50), InSteps(weights(6, 50), 0.004), np.arange(6, dtype=np.float32)], (40, 6), {}, 1),
    ("FULLY_CONNECTED", [(40, 50), InSteps(weights(6, 50), scales(6)), None], (40, 6),
     {"asymmetricQuantizeInputs": True, "fusedActivationFunction": 1}, 1),
    ("CONV_2D", [(2, 9, 8, 4), InSteps(weights(6, 3, 3, 4), scales(6)), np.arange(6, dtype=np.float32)],
     (2, 9, 8, 6), {"of": "Conv2D", **SAME, **ONE}, 1),
    ("CONV_2D", [(2, 9, 8, 4), InSteps(weights(6, 3, 3, 4), 0.004), np.arange(6, dtype=np.float32)],
     (2, 9, 8, 6), {"of": "Conv2D", **SAME, **ONE}, 1),
    ("DEPTHWISE_CONV_2D", [(2, 9, 8, 4), InSteps(weights(1, 3, 3, 8), scales(8), axis=3),
     np.arange(8, dtype=np.float32)], (2, 9, 8, 8),
     {"of": "DepthwiseConv2D", **SAME, **ONE, "depthMultiplier": 2}, 1),
]  # fmt: skip


def drawn(graph: TfliteGraph) -> dict[str, np.ndarray]:
    random, main, found = np.random.default_rng(1), graph.main, {}
    for name, tensor in graph.inputs.items():
        place = main.place_of(tensor)
        dtype, shape = main.type_of(place), main.declared_shape(place)
        if dtype == "float32":
            found[name] = random.standard_normal(shape).astype(np.float32)
        else:
            found[name] = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)
    return found


def compared(graph: TfliteGraph, scratch: Path) -> list[Distance]:
    """With LiteRT's reference kernels where it has them, but for SUM, whose reference kernel is wrong."""
    inputs = drawn(graph)
    of_sum = any(each.kind == "SUM" for each in graph.main.operators())
    name = kernels_for(graph)[-1 if of_sum else 0]
    kernels = Kernels(graph, {name: array.dtype.name for name, array in inputs.items()}, name)
    return distances(graph, kernels.inside(inputs), scratch)


@pytest.mark.parametrize(
    ("kind", "given", "result", "options", "same"),
    CASES,
    ids=[f"{number} {case[0]}" for number, case in enumerate(CASES)],
)
def test_an_operator_in_steps_answers_as_litert_does(
    tmp_path: Path, kind: str, given: list[Any], result: Any, options: dict[str, Any], same: float
) -> None:
    found = compared(
        TfliteGraph(one_operator_in_steps(tmp_path / "m.tflite", kind, given, result, **options).read_bytes()), tmp_path
    )
    require_agreement(found)
    for each in found:
        off = each.off > 0 if each.in_steps else each.off > 1e-6
        assert off.size > 0
        assert np.mean(off) <= 1 - same


def test_every_operator_in_steps_is_tried() -> None:
    """That of a recurrence in another file."""
    assert {case[0] for case in CASES} == kinds_in_steps() - {"UNIDIRECTIONAL_SEQUENCE_LSTM"}


def test_the_documentation_lists_the_operators() -> None:
    """`python tests/bench/importer_table.py` writes the list."""
    page = Path(__file__).parents[4] / "docs" / "how-to" / "race-litert-files.md"
    (part,) = re.findall("<!-- operators -->(.*?)<!-- end of operators -->", page.read_text(), re.DOTALL)
    real, in_steps = (set(re.findall(r"`(\w+)`", each)) for each in part.strip().split("\n\n"))
    assert real == TRANSLATIONS.keys() - {SET_ROW}
    assert in_steps == kinds_in_steps()


@pytest.mark.parametrize(
    ("kind", "given", "result", "options"),
    [
        ("SIN", [X], like(X), {}),
        ("RESHAPE", [X, whole(20, 100)], InSteps((20, 100), 0.05, 7), {}),
        ("MAXIMUM", [X, InSteps((40, 50), 0.05, 7)], like(X), {}),
        ("CAST", [X], (40, 50), {"of": "Cast"}),
        ("MUL", [X, (40, 50)], like(X), {"of": "Mul"}),
        ("TRANSPOSE_CONV", [whole(2, 18, 16, 5), InSteps(weights(5, 3, 3, 4), scales(5)), (2, 9, 8, 4)], (2, 18, 16, 5),
         {"of": "TransposeConv", **SAME, **TWO}),
        ("SPLIT", [np.array(1, np.int32), X], [like(X, 40, 25), (40, 25)], {"of": "Split", "numSplits": 2}),
    ],
    ids=["no kernel", "other steps", "other steps of a side", "not a number", "real and not", "no dynamic steps",
         "results of two types"],
)  # fmt: skip
def test_what_litert_does_not_compute_in_steps_is_named(
    tmp_path: Path, kind: str, given: list[Any], result: Any, options: dict[str, Any]
) -> None:
    file = one_operator_in_steps(tmp_path / "m.tflite", kind, given, result, **options)
    main = TfliteGraph(file.read_bytes()).main
    (operator,) = main.operators()
    with pytest.raises(Untranslated, match=kind):
        keeps_steps(operator, main, read_by(operator))


def test_an_activation_that_kernels_lack_is_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {"of": "Mul", "fusedActivationFunction": 4}
    file = one_operator_in_steps(tmp_path / "m.tflite", "MUL", [X, like(X)], like(X), **options)
    with pytest.raises(Untranslated, match="activation 4"):
        onnx_model(TfliteGraph(file.read_bytes()))


def _without_zero_point(steps: Steps) -> Steps:
    return Steps(steps.dtype, steps.scales, np.zeros_like(steps.zeros), steps.axis)


def _with_the_first_scale(steps: Steps) -> Steps:
    return Steps(steps.dtype, np.full_like(steps.scales, steps.scales[0]), steps.zeros, steps.axis)


@pytest.mark.parametrize("mistake", [_without_zero_point, _with_the_first_scale])
def test_a_translation_with_a_mistake_does_not_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Steps], Steps]
) -> None:
    kind, given, result, options, _ = CASES[0]
    graph = TfliteGraph(one_operator_in_steps(tmp_path / "m.tflite", kind, given, result, **options).read_bytes())
    real = OnnxGraph.real
    monkeypatch.setattr(OnnxGraph, "real", lambda onnx, value, steps: real(onnx, value, mistake(steps)))
    with pytest.raises(Untranslated, match=kind):
        require_agreement(compared(graph, tmp_path))
