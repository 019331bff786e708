"""Recurrent layers: UNIDIRECTIONAL_SEQUENCE_LSTM and UNIDIRECTIONAL_SEQUENCE_RNN.

LiteRT keeps their states from call to call, until they are reset. A model's answer is that of its inputs, so
here they begin as zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.operation import Operation, Translation, reshaped, whole_numbers
from fairlap.models.sources.litert_files.steps import Steps

_TANH = 4  # ActivationFunctionType
_ACTIVATIONS = {1: "Relu", _TANH: "Tanh"}
_INTO, _FORGET, _NEW, _OUT = range(4)  # the order of the gates in LiteRT
_ONNX_ORDER = (_INTO, _OUT, _FORGET, _NEW)
_BY_INPUT, _BY_STATE, _HOLES, _BIASES = 1, 5, 9, 12  # places of the first ones
_PROJECTION, _STATE, _CELL, _NORMS = 16, 18, 19, 20
_GATE = Steps("int16", np.array([2.0**-12], np.float32), np.zeros(1, np.int64))  # of what a gate is computed from


def _lstm(op: Operation) -> str:
    options, in_steps = op.options, op.is_in_steps(0)
    _refuse_parts(op, (_BY_INPUT, _BY_STATE, _BIASES), wanted=True)
    _refuse_parts(op, (_PROJECTION, *range(_NORMS, _NORMS + 4)), wanted=False)
    _require_state(op, _STATE)
    _require_state(op, _CELL)
    activation = _activation(op)
    steps, units = op.shape(0)[0 if options.timeMajor else 1], op.shape(_BY_STATE)[1]
    clip = float(options.cellClip)
    if not in_steps and (not clip or (options.fusedActivationFunction == _TANH and steps <= clip)):
        # A cell grows by less than 1 in a step, so it does not reach the limit.
        return _whole_lstm(op, units, activation)
    if op.has(_HOLES) or op.has(_HOLES + 1) or (in_steps and options.fusedActivationFunction != _TANH):
        raise Untranslated(f"{op.kind} with peepholes and a limit, or in steps and without tanh")
    return _stepwise_lstm(op, units, activation, clip)


def _whole_lstm(op: Operation, units: int, activation: str) -> str:
    inputs = [_rows(op), _stacked(op, _BY_INPUT), _stacked(op, _BY_STATE)]
    bias = op.node("Concat", [op.given(_BIASES + gate) for gate in _ONNX_ORDER], axis=0)
    zeros = op.hold(np.zeros(4 * units, np.float32))
    inputs.append(reshaped(op, op.node("Concat", [bias, zeros], axis=0), (1, 8 * units)))
    if op.has(_HOLES + 1):
        holes = op.node("Concat", [op.given(_HOLES + gate) for gate in (0, 2, 1)], axis=0)
        inputs += ["", "", "", reshaped(op, holes, (1, 3 * units))]
    activations = ["Sigmoid", activation, activation]
    return _finished(op, op.node("LSTM", inputs, hidden_size=units, activations=activations))


def _stepwise_lstm(op: Operation, units: int, activation: str, clip: float) -> str:
    """Spell out a step, whose cell has a limit, and whose states are rounded where LiteRT holds them in steps."""
    by_input, by_state = (
        op.node("Concat", [op.given(first + gate, (1, 0)) for gate in range(4)], axis=1)
        for first in (_BY_INPUT, _BY_STATE)
    )
    bias = op.node("Concat", [_bias(op, gate) for gate in range(4)], axis=0)
    steps, batch = (op.shape(0)[axis] for axis in ((0, 1) if op.options.timeMajor else (1, 0)))
    rows = op.given(0, None if op.options.timeMajor else (1, 0, 2), (steps * batch, op.shape(0)[2]))
    rows = reshaped(op, op.node("Gemm", [rows, by_input, bias]), (steps, batch, 4 * units))
    inside = op.onnx.inside()
    hidden, cell, row = (inside.fresh() for _ in range(3))

    def in_steps(value: str, place: int) -> str:
        steps = op.steps(place)
        return value if steps is None else inside.real(inside.rounded(value, steps), steps)

    total = inside.node("Add", [row, inside.node("MatMul", [hidden, by_state])])
    if op.is_in_steps(0):
        total = inside.real(inside.rounded(total, _GATE), _GATE)
    gates = [inside.fresh() for _ in range(4)]
    inside.node("Split", [total, op.hold(whole_numbers([units] * 4))], gates, axis=1)
    into, keep, out = (inside.node("Sigmoid", [gates[gate]]) for gate in (_INTO, _FORGET, _OUT))
    new = inside.node(activation, [gates[_NEW]])
    cell_after = inside.node("Add", [inside.node("Mul", [keep, cell]), inside.node("Mul", [into, new])])
    if clip:
        ends = [op.hold(np.array(each, np.float32)) for each in (-clip, clip)]
        cell_after = inside.node("Clip", [cell_after, *ends])
    cell_after = in_steps(cell_after, _CELL)
    hidden_after = in_steps(inside.node("Mul", [out, inside.node(activation, [cell_after])]), _STATE)
    names = [inside.node("Identity", [each]) for each in (hidden_after, cell_after, hidden_after)]
    start = op.hold(np.zeros((batch, units), np.float32))
    states = [op.onnx.fresh() for _ in range(3)]
    body = _body(inside.nodes, {hidden: (batch, units), cell: (batch, units), row: (batch, 4 * units)}, names)
    op.onnx.node("Scan", [start, start, rows], states, body=body, num_scan_inputs=1)
    return _turned_back(op, states[2])


def _body(nodes: Sequence[Any], inputs: Mapping[str, tuple[int, ...]], results: Sequence[str]) -> Any:
    from onnx import TensorProto, helper

    shape = next(iter(inputs.values()))
    return helper.make_graph(
        nodes,
        "step",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in results],
    )


def _bias(op: Operation, gate: int) -> str:
    value, weight = op.steps(0), op.steps(_BY_INPUT + gate)
    if value is None or weight is None:
        return op.given(_BIASES + gate)
    (bias,) = op.bias(_BIASES + gate, Steps("int32", value.scales * weight.scales, np.zeros(1, np.int64)))
    return bias


def _rnn(op: Operation) -> str:
    _require_state(op, 4)
    units = op.shape(2)[1]
    inputs = [_rows(op), *(reshaped(op, op.given(place), (1, *op.shape(place))) for place in (1, 2))]
    zeros = op.hold(np.zeros(units, np.float32))
    inputs.append(reshaped(op, op.node("Concat", [op.given(3), zeros], axis=0), (1, 2 * units)))
    return _finished(op, op.node("RNN", inputs, hidden_size=units, activations=[_activation(op)]))


def _stacked(op: Operation, first: int) -> str:
    weights = op.node("Concat", [op.given(first + gate) for gate in _ONNX_ORDER], axis=0)
    rows, width = op.shape(first)
    return reshaped(op, weights, (1, 4 * rows, width))


def _rows(op: Operation) -> str:
    """Bring the steps to the front."""
    return op.given(0, None if op.options.timeMajor else (1, 0, 2))


def _finished(op: Operation, states: str) -> str:
    """Drop the axis of directions."""
    return _turned_back(op, op.node("Squeeze", [states, op.hold(whole_numbers([1]))]))


def _turned_back(op: Operation, states: str) -> str:
    return states if op.options.timeMajor else op.moved_result(states, (1, 0, 2))


def _activation(op: Operation) -> str:
    number = int(op.options.fusedActivationFunction)
    if number not in _ACTIVATIONS:
        raise Untranslated(f"{op.kind} with the activation {number}")
    return _ACTIVATIONS[number]


def _refuse_parts(op: Operation, places: Sequence[int], *, wanted: bool) -> None:
    if any(op.has(place) != wanted for place in places):
        raise Untranslated(f"{op.kind} without an input gate, or with a projection or a normalisation")


def _require_state(op: Operation, place: int) -> None:
    if not op.has(place) or not op.part.is_state(op.inputs[place]):
        raise Untranslated(f"{op.kind} whose state is an input")


RECURRENT: Mapping[str, Translation] = {"UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm, "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn}
RECURRENT_READ: Mapping[str, Sequence[int]] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (*range(_STATE), *range(_NORMS, _NORMS + 4)),
    "UNIDIRECTIONAL_SEQUENCE_RNN": range(4),
}
