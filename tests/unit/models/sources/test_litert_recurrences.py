"""Recurrent layers, loops and branches of LiteRT answer in ONNX what LiteRT's own kernels answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.sources.litert_files.agreement import distances, require_agreement
from fairlap.models.sources.litert_files.kernels import Kernels
from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.onnx_of_litert import onnx_model
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph
from fairlap.models.sources.onnx_graphs.imported_reference import imported_reference
from machine_marks import needs
from onnx_files import drawn
from recurrent_tflite_files import TANH, counted_loop, lstm, lstm_in_steps, rnn, two_branches

needs("ai_edge_litert", "onnx")


def compared(graph: TfliteGraph, inputs: dict[str, np.ndarray], scratch: Path) -> tuple[np.ndarray, np.ndarray]:
    """Compute what LiteRT's kernels answer, and what the graph in ONNX does in float64."""
    kernels = Kernels(graph, {name: array.dtype.name for name, array in inputs.items()})
    (own,) = kernels(graph.weights(), inputs).values()
    (scratch / "m.onnx").write_bytes(onnx_model(graph).SerializeToString())
    loaded, forward = imported_reference(scratch / "m.onnx")
    (found,) = forward(_wide(loaded.weights), _wide(inputs)).values()
    return own, np.asarray(found)


def _wide(arrays: Any) -> dict[str, np.ndarray]:
    return {name: each.astype(np.float64) if each.dtype == np.float32 else each for name, each in arrays.items()}


def operators_in(graph: TfliteGraph) -> set[str]:
    return {node.op_type for node in onnx_model(graph).graph.node}


@pytest.mark.parametrize(
    ("steps", "options", "operator"),
    [
        (6, {"clip": 10.0}, "LSTM"),
        (6, {}, "LSTM"),
        (6, {"activation": 1}, "LSTM"),
        (6, {"time_major": True}, "LSTM"),
        (6, {"peepholes": True}, "LSTM"),
        (6, {"clip": 0.5}, "Scan"),
        (6, {"clip": 0.5, "time_major": True}, "Scan"),
        (12, {"clip": 10.0}, "Scan"),
    ],
    ids=["no clip is reached", "plain", "relu", "time first", "peepholes", "a clip", "a clip, time first", "long"],
)
def test_an_lstm_answers_as_litert_does(tmp_path: Path, steps: int, options: dict[str, Any], operator: str) -> None:
    graph = TfliteGraph(lstm(tmp_path / "m.tflite", steps, **options).read_bytes())
    own, found = compared(graph, {"x": 3 * drawn(*graph.main.declared_shape(0))}, tmp_path)
    assert operator in operators_in(graph)
    np.testing.assert_allclose(own, found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", [1, TANH])
def test_a_plain_recurrence_answers_as_litert_does(tmp_path: Path, activation: int) -> None:
    graph = TfliteGraph(rnn(tmp_path / "m.tflite", activation).read_bytes())
    own, found = compared(graph, {"x": 3 * drawn(*graph.main.declared_shape(0))}, tmp_path)
    np.testing.assert_allclose(own, found, rtol=1e-5, atol=1e-6)


def test_an_lstm_in_steps_rounds_its_states_as_litert_does(tmp_path: Path) -> None:
    graph = TfliteGraph(lstm_in_steps(tmp_path / "m.tflite").read_bytes())
    x = np.random.default_rng(0).integers(-128, 128, graph.main.declared_shape(0)).astype(np.int8)
    kernels = Kernels(graph, {"x": "int8"})
    found = distances(graph, kernels.inside({"x": x}), tmp_path)
    require_agreement(found)
    (off,) = (each.off for each in found)
    assert np.mean(off == 0) > 0.9
    assert off.max() <= 1


@pytest.mark.parametrize(
    "options",
    [{"activation": 3}, {"without": (1, 5, 12)}, {"projection": True}, {"clip": 0.5, "peepholes": True}],
    ids=["relu6", "no input gate", "a projection", "a clip and peepholes"],
)
def test_other_forms_of_an_lstm_are_refused_by_name(tmp_path: Path, options: dict[str, Any]) -> None:
    graph = TfliteGraph(lstm(tmp_path / "m.tflite", 3, **options).read_bytes())
    with pytest.raises(Untranslated, match="UNIDIRECTIONAL_SEQUENCE_LSTM"):
        onnx_model(graph)


@pytest.mark.parametrize("trips", [0, 3, 100])
def test_a_loop_answers_as_litert_does(tmp_path: Path, trips: int) -> None:
    """Over 64 trips the importer repeats the body, instead of putting it in place so many times."""
    graph = TfliteGraph(counted_loop(tmp_path / "m.tflite", trips).read_bytes())
    x = drawn(2, 4)
    own, found = compared(graph, {"x": x}, tmp_path)
    expected = x.astype(np.float64)
    for _ in range(trips):
        expected = np.tanh(expected + np.float32(0.1).astype(np.float64))
    np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_answers_as_litert_does(tmp_path: Path, *, taken: bool) -> None:
    graph = TfliteGraph(two_branches(tmp_path / "m.tflite").read_bytes())
    x = drawn(2, 4)
    own, found = compared(graph, {"condition": np.array(taken), "x": x}, tmp_path)
    expected = np.tanh(x) if taken else np.exp(x)
    np.testing.assert_allclose(own, expected, rtol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_unknown_operator_inside_of_a_loop_is_named(tmp_path: Path) -> None:
    graph = TfliteGraph(counted_loop(tmp_path / "m.tflite", 3, inside="L2_NORMALIZATION").read_bytes())
    with pytest.raises(Untranslated, match="L2_NORMALIZATION"):
        onnx_model(graph)
