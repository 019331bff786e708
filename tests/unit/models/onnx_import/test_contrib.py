"""ONNX Runtime's own operators mean in the importer what they mean in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.onnx_import import build, load_graph
from fairlap.models.onnx_import.contrib.expansion import EXPANSIONS
from fairlap.models.onnx_import.errors import OperatorsUnsupported
from machine_marks import needs
from margins import by_onnxruntime, by_torch
from onnx_files import drawn

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
needs("onnxruntime")

U8, I8 = np.uint8, np.int8


def steps(*shape: int, dtype: Any = U8, seed: int = 0) -> np.ndarray:
    low, high = (
        (0, 256) if dtype == U8 else (-64, 64)
    )  # of signed weights seven bits: eight saturate on some processors
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int, dtype: Any = U8) -> np.ndarray:
    return np.array(value, dtype)


Arrays = Mapping[str, Any]
# Operator, inputs by name in their order (x... vary, the others are initializers), attributes, number of outputs.
CASES: dict[str, tuple[str, Arrays, dict[str, Any], int]] = {
    "Gelu": ("Gelu", {"x": drawn(2, 8)}, {}, 1),
    "BiasGelu": ("BiasGelu", {"x": drawn(2, 8), "bias": drawn(8)}, {}, 1),
    "FastGelu": ("FastGelu", {"x": drawn(2, 8)}, {}, 1),
    "FastGelu with a bias": ("FastGelu", {"x": drawn(2, 8), "bias": drawn(8)}, {}, 1),
    "QuickGelu": ("QuickGelu", {"x": drawn(2, 8)}, {"alpha": 1.5}, 1),
    "FusedMatMul": ("FusedMatMul", {"x": drawn(2, 4, 8), "w": drawn(8, 3)}, {"alpha": 0.5}, 1),
    "FusedMatMul, turned": ("FusedMatMul", {"x": drawn(2, 8, 4), "w": drawn(3, 8)}, {"transA": 1, "transB": 1}, 1),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        {"x": drawn(2, 4, 8), "x2": drawn(2, 4, 8, seed=1), "scale": drawn(8), "shift": drawn(8), "bias": drawn(8)},
        {"epsilon": 1e-3},
        1,
    ),
    "SkipLayerNormalization with its sum": (
        "SkipLayerNormalization",
        {"x": drawn(2, 4, 8), "x2": drawn(2, 4, 8, seed=1), "scale": drawn(8), "shift": drawn(8)},
        {},
        4,
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization",
        {"x": drawn(2, 4, 8), "x2": drawn(2, 4, 8, seed=1), "scale": drawn(8)},
        {"epsilon": 1e-5},
        1,
    ),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        {
            "x": np.array([[1, 5, 2], [0, 3, 3]], np.int32),
            "x2": np.array([[0, 1, 1], [0, 0, 1]], np.int32),
            "words": drawn(6, 8),
            "positions": drawn(4, 8),
            "segments": drawn(2, 8),
            "scale": drawn(8),
            "shift": drawn(8),
            "x3": np.array([[1, 1, 0], [1, 0, 0]], np.int32),
        },
        {"epsilon": 1e-6},
        2,
    ),
    "Attention": (
        "Attention",
        {"x": drawn(2, 5, 8), "w": drawn(8, 24), "bias": drawn(24)},
        {"num_heads": 2},
        1,
    ),
    "Attention with a mask": (
        "Attention",
        {
            "x": drawn(2, 5, 8),
            "w": drawn(8, 24),
            "bias": drawn(24),
            "x2": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
        },
        {"num_heads": 2},
        1,
    ),
    "Attention to what was before": (
        "Attention",
        {"x": drawn(2, 5, 8), "w": drawn(8, 24), "bias": drawn(24)},
        {"num_heads": 4, "unidirectional": 1, "scale": 0.3},
        1,
    ),
    "MultiHeadAttention": (
        "MultiHeadAttention",
        {"x": drawn(2, 5, 8), "x2": drawn(2, 6, 8), "x3": drawn(2, 6, 8, seed=2), "bias": drawn(24)},
        {"num_heads": 2},
        1,
    ),
    "MatMulNBits": (
        "MatMulNBits",
        {"x": drawn(3, 64), "w": steps(5, 2, 16), "scales": np.abs(drawn(10))},
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
        1,
    ),
    "MatMulNBits with zero points": (
        "MatMulNBits",
        {"x": drawn(3, 64), "w": steps(5, 2, 16), "scales": np.abs(drawn(10)), "zeros": steps(5)},
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
        1,
    ),
    "QLinearAdd": (
        "QLinearAdd",
        {
            "x": steps(2, 8),
            "a": scale(0.1),
            "b": zero(120),
            "x2": steps(2, 8, seed=1),
            "c": scale(0.03),
            "d": zero(9),
            "e": scale(0.2),
            "f": zero(100),
        },
        {},
        1,
    ),
    "QLinearMul": (
        "QLinearMul",
        {
            "x": steps(2, 8),
            "a": scale(0.1),
            "b": zero(120),
            "x2": steps(2, 8, seed=1),
            "c": scale(0.03),
            "d": zero(9),
            "e": scale(0.9),
            "f": zero(100),
        },
        {},
        1,
    ),
    "QLinearSigmoid": (
        "QLinearSigmoid",
        {"x": steps(2, 8), "a": scale(0.02), "b": zero(120), "e": scale(0.004), "f": zero(0)},
        {},
        1,
    ),
    "QLinearLeakyRelu": (
        "QLinearLeakyRelu",
        {"x": steps(2, 8), "a": scale(0.02), "b": zero(120), "e": scale(0.02), "f": zero(90)},
        {"alpha": 0.2},
        1,
    ),
    "QLinearGlobalAveragePool": (
        "QLinearGlobalAveragePool",
        {"x": steps(2, 3, 5, 5), "a": scale(0.02), "b": zero(120), "e": scale(0.01), "f": zero(90)},
        {},
        1,
    ),
    "QLinearAveragePool": (
        "QLinearAveragePool",
        {"x": steps(2, 3, 5, 5), "a": scale(0.02), "b": zero(120), "e": scale(0.013), "f": zero(90)},
        {"kernel_shape": [2, 2]},
        1,
    ),
    "QLinearConcat": (
        "QLinearConcat",
        {
            "e": scale(0.03),
            "f": zero(90),
            "x": steps(2, 3),
            "a": scale(0.02),
            "b": zero(120),
            "x2": steps(2, 4),
            "c": scale(0.01),
            "d": zero(1),
        },
        {"axis": 1},
        1,
    ),
    "QGemm": (
        "QGemm",
        {
            "x": steps(2, 8),
            "a": scale(0.02),
            "b": zero(120),
            "w": steps(8, 3, dtype=I8),
            "c": scale(0.01),
            "d": zero(0, I8),
            "bias": np.array([100, -30, 7], np.int32),
            "e": scale(0.05),
            "f": zero(90),
        },
        {},
        1,
    ),
    "QGemm in real numbers, with a scale for each column": (
        "QGemm",
        {
            "x": steps(2, 8),
            "a": scale(0.02),
            "b": zero(120),
            "w": steps(3, 8, dtype=I8),
            "c": np.array([0.01, 0.02, 0.03], np.float32),
            "d": np.zeros(3, I8),
            "bias": np.array([100, -30, 7], np.int32),
        },
        {"transB": 1},
        1,
    ),
    "DynamicQuantizeMatMul": (
        "DynamicQuantizeMatMul",
        {"x": drawn(4, 8), "w": steps(8, 3), "c": scale(0.01), "d": zero(120), "bias": drawn(3)},
        {},
        1,
    ),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat",
        {
            "x": steps(4, 8),
            "w": steps(8, 3, seed=1),
            "a": scale(0.02),
            "c": scale(0.01),
            "b": zero(100),
            "d": zero(120),
            "bias": drawn(3),
        },
        {},
        1,
    ),
    "QuantizeLinear": ("QuantizeLinear", {"x": drawn(4, 8), "a": scale(0.02), "b": zero(100)}, {}, 1),
    "DequantizeLinear": ("DequantizeLinear", {"x": steps(4, 8), "a": scale(0.02), "b": zero(100)}, {}, 1),
}


def model_of(case: str, opset: int = 17) -> tuple[Any, dict[str, np.ndarray]]:
    helper = onnx.helper
    operator, arrays, attributes, count = CASES[case]
    outputs = ["out", *([""] * max(0, count - 2)), *(["last"] if count > 1 else [])]
    node = helper.make_node(operator, list(arrays), outputs, domain="com.microsoft", name="n", **attributes)
    inputs = {name: np.asarray(array) for name, array in arrays.items() if name.startswith("x")}
    ends = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    held = [onnx.numpy_helper.from_array(np.asarray(each), name) for name, each in arrays.items() if name not in inputs]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([node], "g", ends, results, held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return model, inputs


@pytest.mark.parametrize("case", CASES)
def test_an_operator_computes_what_onnx_runtime_computes(case: str, tmp_path: Path) -> None:
    model, inputs = model_of(case)
    expected = by_onnxruntime(model, inputs)
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    graph = load_graph(file)
    in_float64 = build(graph, "numpy")(graph.weights, inputs)
    for found in (in_float64, by_torch(model, inputs, tmp_path)):
        assert set(found) == set(expected)
        for name, right in expected.items():
            assert found[name].shape == right.shape
            np.testing.assert_allclose(found[name].astype(np.float64), right.astype(np.float64), rtol=2e-5, atol=2e-6)


@pytest.mark.slow_but("21")
@pytest.mark.parametrize("opset", [12, 21])
def test_the_opset_of_the_file_makes_no_difference(opset: int, tmp_path: Path) -> None:
    for case in CASES:
        model, inputs = model_of(case, opset)
        file = tmp_path / "m.onnx"
        file.write_bytes(model.SerializeToString())
        graph = load_graph(file)
        found = build(graph, "numpy")(graph.weights, inputs)
        file.write_bytes(model_of(case)[0].SerializeToString())
        graph = load_graph(file)
        for name, right in build(graph, "numpy")(graph.weights, inputs).items():
            np.testing.assert_allclose(found[name], right, rtol=1e-12, atol=1e-12, err_msg=f"{case}: {name}")


def test_every_operator_that_is_expanded_has_a_case() -> None:
    covered = {operator for operator, *_ in CASES.values()}
    elsewhere = {"SimplifiedLayerNormalization", "QLinearSoftmax", "DynamicQuantizeLSTM"}  # below, or as recurrences
    assert set(EXPANSIONS) - covered == elsewhere


def test_a_softmax_in_steps_is_within_one_step_of_onnx_runtime(tmp_path: Path) -> None:
    CASES["softmax"] = (
        "QLinearSoftmax",
        {"x": steps(4, 16), "a": scale(0.02), "b": zero(120), "e": scale(1 / 256), "f": zero(0)},
        {"axis": -1, "opset": 13},
        1,
    )
    model, inputs = model_of("softmax")
    del CASES["softmax"]
    right = by_onnxruntime(model, inputs)["out"].astype(int)
    found = by_torch(model, inputs, tmp_path)["out"].astype(int)
    assert right.max() > 10
    assert np.abs(found - right).max() <= 1


@pytest.mark.parametrize(("operator", "count"), [("LayerNormalization", 2), ("SimplifiedLayerNormalization", 1)])
def test_a_normalisation_may_be_older_in_onnx_runtime_than_in_onnx(operator: str, count: int, tmp_path: Path) -> None:
    helper = onnx.helper
    node = helper.make_node(operator, ["x", "scale", "shift"][: 1 + count], ["out"], epsilon=1e-3, axis=-1)
    ends = [helper.make_tensor_value_info(name, 1, [2, 8]) for name in ("x", "out")]
    held = [onnx.numpy_helper.from_array(drawn(8, seed=seed), name) for seed, name in enumerate(("scale", "shift"))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], held[:count])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)])
    model.ir_version = 7
    inputs = {"x": drawn(2, 8)}
    found = by_torch(model, inputs, tmp_path)["out"]
    np.testing.assert_allclose(found, by_onnxruntime(model, inputs)["out"], rtol=1e-5, atol=1e-6)


def test_a_form_that_is_not_known_is_refused_by_its_name(tmp_path: Path) -> None:
    model, _ = model_of("Attention")
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("do_rotary", 1))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(OperatorsUnsupported) as refused:
        load_graph(tmp_path / "m.onnx")
    assert "com.microsoft.Attention" in str(refused.value)
