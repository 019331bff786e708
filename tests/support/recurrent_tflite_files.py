"""LiteRT files with recurrent layers, loops and branches, written without a converter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx_files import drawn
from quantized_tflite_files import InSteps, any_tensor
from tflite_files import GraphWriter

BATCH, WIDTH, UNITS = 2, 3, 4
TANH = 4  # ActivationFunctionType


def _sizes(steps: int, width: int, *, time_major: bool) -> tuple[int, int, int]:
    return (steps, BATCH, width) if time_major else (BATCH, steps, width)


def _state(file: GraphWriter, name: str, value: Any = (BATCH, UNITS)) -> int:
    place = any_tensor(file, name, value)
    file.graph.tensors[place].isVariable = True
    return place


def lstm(
    path: Path,
    steps: int,
    *,
    clip: float = 0.0,
    activation: int = TANH,
    time_major: bool = False,
    peepholes: bool = False,
    projection: bool = False,
    without: Sequence[int] = (),
) -> Path:
    """Input ``x``, output ``y``, whose weights are drawn; ``without`` are places of inputs that are left out."""
    file = GraphWriter()
    x = file.tensor("x", _sizes(steps, WIDTH, time_major=time_major))
    places = [x, *(-1 for _ in range(23))]

    def hold(place: int, *shape: int) -> None:
        places[place] = file.tensor(f"held {place}", shape, "float32", 2 * drawn(*shape, seed=place))

    for gate in range(4):
        hold(1 + gate, UNITS, WIDTH)
        hold(5 + gate, UNITS, UNITS)
        hold(12 + gate, UNITS)
    for gate in range(3 if peepholes else 0):
        hold(9 + gate, UNITS)
    if projection:
        hold(16, UNITS, UNITS)
    for place in without:
        places[place] = -1
    places[18], places[19] = _state(file, "hidden"), _state(file, "cell")
    y = file.tensor("y", _sizes(steps, UNITS, time_major=time_major))
    options = {"fusedActivationFunction": activation, "cellClip": clip, "timeMajor": time_major}
    file.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", places, y, of="UnidirectionalSequenceLSTM", **options)
    file.graph.inputs, file.graph.outputs = [x], [y]
    return file.written(path)


def lstm_in_steps(path: Path, steps: int = 20) -> Path:
    """As the converter writes it: weights and states in int8, the cell in int16."""
    file, random = GraphWriter(), np.random.default_rng(0)
    x = any_tensor(file, "x", InSteps((BATCH, steps, WIDTH), 0.02, 5))
    places = [x, *(-1 for _ in range(23))]
    for gate in range(4):
        for first, width in ((1, WIDTH), (5, UNITS)):
            held = random.integers(-127, 128, (UNITS, width)).astype(np.int8)
            places[first + gate] = any_tensor(file, f"held {first + gate}", InSteps(held, 0.01))
        bias = random.integers(-2000, 2000, UNITS).astype(np.int32)
        places[12 + gate] = any_tensor(file, f"held {12 + gate}", InSteps(bias, 0.0002, 0, "int32"))
    hidden = InSteps((BATCH, UNITS), 0.0078, 2)
    places[18] = _state(file, "hidden", hidden)
    places[19] = _state(file, "cell", InSteps((BATCH, UNITS), 2.0**-12, 0, "int16"))
    y = any_tensor(file, "y", InSteps((BATCH, steps, UNITS), hidden.scale, hidden.zero))
    options = {"fusedActivationFunction": TANH, "cellClip": 10.0}
    file.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", places, y, of="UnidirectionalSequenceLSTM", **options)
    inside = [any_tensor(file, f"inside {number}", (0,)) for number in range(4)]
    inside.append(any_tensor(file, "inside 4", InSteps((0,), hidden.scale, hidden.zero)))
    file.graph.operators[-1].intermediates = inside
    file.graph.inputs, file.graph.outputs = [x], [y]
    return file.written(path)


def rnn(path: Path, activation: int, steps: int = 5) -> Path:
    file = GraphWriter()
    x = file.tensor("x", (BATCH, steps, WIDTH))
    held = [
        file.tensor(f"held {place}", shape, "float32", drawn(*shape, seed=place))
        for place, shape in enumerate(((UNITS, WIDTH), (UNITS, UNITS), (UNITS,)))
    ]
    y = file.tensor("y", (BATCH, steps, UNITS))
    places = [x, *held, _state(file, "hidden")]
    options = {"fusedActivationFunction": activation, "timeMajor": False}
    file.operator("UNIDIRECTIONAL_SEQUENCE_RNN", places, y, of="SequenceRNN", **options)
    file.graph.inputs, file.graph.outputs = [x], [y]
    return file.written(path)


def counted_loop(path: Path, trips: int, inside: str = "TANH") -> Path:
    """Write ``x`` plus 0.1, through an operator, so many times."""
    file = GraphWriter()
    start, x = file.tensor("start", (), "int32", np.array(0, np.int32)), file.tensor("x", (2, 4))
    results = [file.tensor("last", (), "int32"), file.tensor("y", (2, 4))]
    file.operator("WHILE", [start, x], results[0], of="While", condSubgraphIndex=1, bodySubgraphIndex=2)
    file.graph.operators[-1].outputs = results
    file.graph.inputs, file.graph.outputs = [x], [results[1]]

    file.begin_graph()
    count, value = file.tensor("count", (), "int32"), file.tensor("value", (2, 4))
    most = file.tensor("trips", (), "int32", np.array(trips, np.int32))
    file.graph.inputs = [count, value]
    file.graph.outputs = [file.operator("LESS", [count, most], file.tensor("more", (), "bool"))]

    file.begin_graph()
    count, value = file.tensor("count", (), "int32"), file.tensor("value", (2, 4))
    one = file.tensor("one", (), "int32", np.array(1, np.int32))
    tenth = file.tensor("tenth", (), "float32", np.array(0.1, np.float32))
    following = file.operator("ADD", [count, one], file.tensor("next", (), "int32"), of="Add")
    total = file.operator("ADD", [value, tenth], file.tensor("sum", (2, 4)), of="Add")
    of = {"of": "L2Norm"} if inside == "L2_NORMALIZATION" else {}
    file.graph.inputs = [count, value]
    file.graph.outputs = [following, file.operator(inside, [total], file.tensor("changed", (2, 4)), **of)]
    return file.written(path)


def two_branches(path: Path) -> Path:
    """Write the hyperbolic tangent of ``x`` where a condition is true, else the exponential."""
    file = GraphWriter()
    condition, x = file.tensor("condition", (), "bool"), file.tensor("x", (2, 4))
    y = file.tensor("y", (2, 4))
    file.operator("IF", [condition, x], y, of="If", thenSubgraphIndex=1, elseSubgraphIndex=2)
    file.graph.inputs, file.graph.outputs = [condition, x], [y]
    for kind in ("TANH", "EXP"):
        file.begin_graph()
        given = file.tensor("given", (2, 4))
        file.graph.inputs = [given]
        file.graph.outputs = [file.operator(kind, [given], file.tensor("result", (2, 4)))]
    return file.written(path)
