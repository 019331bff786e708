"""Recurrences of files compute what ONNX Runtime computes, in every form that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.onnx_import import build, load_graph
from fairlap.models.onnx_import.errors import OperatorsUnsupported
from machine_marks import needs
from margins import by_onnxruntime, by_torch
from onnx_files import drawn

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
needs("onnxruntime")

STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FORMS: dict[str, dict[str, Any]] = {
    "forward": {},
    "reverse": {"direction": "reverse"},
    "bidirectional": {"direction": "bidirectional"},
}


def recurrence(operator: str, *, lengths: bool = False, start: bool = False, **attributes: Any) -> tuple[Any, Any]:
    helper = onnx.helper
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = GATES[operator] * HIDDEN
    arrays = {
        "w": drawn(directions, rows, WIDTH),
        "r": drawn(directions, rows, HIDDEN),
        "b": drawn(directions, 2 * rows),
    }
    inputs = {"x": drawn(STEPS, BATCH, WIDTH, seed=3)}
    ends = [helper.make_tensor_value_info("x", 1, [STEPS, BATCH, WIDTH])]
    if lengths:
        inputs["n"] = np.array([5, 2, 3], np.int32)
        ends.append(helper.make_tensor_value_info("n", 6, [BATCH]))
    states = ["h", *(["c"] if operator == "LSTM" else [])] if start else []
    arrays |= {name: drawn(directions, BATCH, HIDDEN, seed=seed) for seed, name in enumerate(states)}
    outputs = ["y", "y_h", *(["y_c"] if operator == "LSTM" else [])]
    names = ["x", "w", "r", "b", "n" if lengths else "", *states]
    node = helper.make_node(operator, names, outputs, hidden_size=HIDDEN, **attributes)
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", ends, results, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 7
    return model, inputs


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", GATES)
def test_a_recurrence_computes_what_onnx_runtime_computes(
    operator: str, form: str, start: bool, tmp_path: Path
) -> None:
    same(*recurrence(operator, start=start, **FORMS[form]), tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", GATES)
def test_sequences_may_end_before_the_last_step(operator: str, form: str, tmp_path: Path) -> None:
    same(*recurrence(operator, lengths=True, start=True, **FORMS[form]), tmp_path)


def test_a_gru_may_reset_after_its_product(tmp_path: Path) -> None:
    same(*recurrence("GRU", linear_before_reset=1), tmp_path)


def test_other_activations_are_taken_from_the_file(tmp_path: Path) -> None:
    same(*recurrence("LSTM", activations=["Sigmoid", "Relu", "Softsign"]), tmp_path)


def same(model: Any, inputs: dict[str, np.ndarray], folder: Path) -> None:
    expected = by_onnxruntime(model, inputs)
    file = folder / "m.onnx"
    file.write_bytes(model.SerializeToString())
    graph = load_graph(file)
    for found in (build(graph, "numpy")(graph.weights, inputs), by_torch(model, inputs, folder)):
        for name, right in expected.items():
            np.testing.assert_allclose(found[name], right, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "attributes",
    [{"clip": 1.0}, {"activations": ["HardSigmoid", "Tanh", "Tanh"]}],
)
def test_forms_that_are_not_followed_are_refused(attributes: dict[str, Any], tmp_path: Path) -> None:
    model, _ = recurrence("LSTM", **attributes)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(OperatorsUnsupported):
        load_graph(tmp_path / "m.onnx")


def test_a_recurrence_in_steps_quantizes_what_it_reads_and_its_states(tmp_path: Path) -> None:
    """As ONNX Runtime's DynamicQuantizeLSTM, whose weights are unsigned here: signed ones may saturate."""
    helper = onnx.helper
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.integers(0, 256, (1, WIDTH, 4 * HIDDEN)).astype(np.uint8),
        "r": rng.integers(0, 256, (1, HIDDEN, 4 * HIDDEN)).astype(np.uint8),
        "b": drawn(1, 8 * HIDDEN),
        "w.scale": np.array([0.01], np.float32),
        "w.zero": np.array([128], np.uint8),
        "r.scale": np.array([0.013], np.float32),
        "r.zero": np.array([120], np.uint8),
    }
    names = ["x", "w", "r", "b", "", "", "", "", "w.scale", "w.zero", "r.scale", "r.zero"]
    outputs = ["y", "y_h", "y_c"]
    node = helper.make_node("DynamicQuantizeLSTM", names, outputs, domain="com.microsoft", hidden_size=HIDDEN)
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", 1, [STEPS, 1, WIDTH])],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        held,
    )
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 7
    inputs = {"x": drawn(STEPS, 1, WIDTH, seed=3)}
    same(model, inputs, tmp_path)


@pytest.mark.parametrize("length", [-1, STEPS + 1])
@pytest.mark.parametrize("operator", GATES)
def test_lengths_that_are_no_part_of_the_sequence_are_refused(operator: str, length: int, tmp_path: Path) -> None:
    model, inputs = recurrence(operator, lengths=True)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    graph = load_graph(tmp_path / "m.onnx")
    forward = build(graph, "numpy")
    with pytest.raises(FairlapError) as refused:
        forward(graph.weights, {**inputs, "n": np.array([length, 2, 3], np.int32)})
    assert (refused.value.code, len(str(refused.value).splitlines())) == ("E_SOURCE_INPUTS", 1)
    assert str(length) in str(refused.value)
