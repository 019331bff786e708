"""Operations as ONNX graphs.

A recurrent operator takes its gates in another order; readers of the graph reorder the constant weights once, when they
load it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.onnx_graph import model_of
from fairlap.models.arrays import Arrays
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Gru, Lstm, Recurrent, Rnn
from fairlap.models.operations.operation import Operation
from onnx import helper, numpy_helper

_OPERATORS: dict[type[Operation], str] = {Rnn: "RNN", Lstm: "LSTM", Gru: "GRU"}
_GATES: dict[type[Operation], tuple[int, ...]] = {Lstm: (0, 3, 1, 2), Gru: (1, 0, 2)}
_SETTINGS: dict[type[Operation], dict[str, Any]] = {Rnn: {"activations": ["Relu"]}, Gru: {"linear_before_reset": 1}}


class Implementation:
    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def build(self, weights: Arrays, batch: int) -> Any:
        return model_of(self._operation.spec(), _nodes(self._operation), weights, batch)


def _nodes(operation: Operation) -> list[Any]:
    match operation:
        case Gemm():
            turned = {"transA": int(operation.a_transposed), "transB": int(operation.b_transposed)}
            return [helper.make_node("Gemm", ["a", "b"], ["product"], **turned)]
        case Convolution():
            edges = [operation.pad_height, operation.pad_width]
            shape = {
                "kernel_shape": [operation.filter_height, operation.filter_width],
                "pads": edges * 2,
                "strides": [operation.stride_height, operation.stride_width],
            }
            return [helper.make_node("Conv", ["images", "filters"], ["convolved"], **shape)]
        case Recurrent():
            return _layer(operation)
        case Embedding():
            return [helper.make_node("Gather", ["table", "numbers"], ["found"])]
        case _:
            raise TypeError(operation)


def _layer(recurrent: Recurrent) -> list[Any]:
    """Make the operator's nodes; its outputs have an axis for the directions, of which there is one."""
    kind = type(recurrent)
    nodes = [
        _constant("first", [0]),
        _constant("second", [1]),
        *_reordered(recurrent, "layer.weight_ih_l0", "of inputs"),
        *_reordered(recurrent, "layer.weight_hh_l0", "of state"),
    ]
    taken, shown = ["sequence", "of inputs", "of state"], ["with directions"]
    settings = {"hidden_size": recurrent.hidden, **_SETTINGS.get(kind, {})}
    nodes.append(helper.make_node(_OPERATORS[kind], taken, shown, **settings))
    return [*nodes, helper.make_node("Squeeze", ["with directions", "second"], ["states"])]


def _reordered(recurrent: Recurrent, weight: str, result: str) -> list[Any]:
    order = _GATES.get(type(recurrent))
    if order is None:
        return [helper.make_node("Unsqueeze", [weight, "first"], [result])]
    parts = [f"{result}, gate {gate}" for gate in range(recurrent.gates)]
    return [
        helper.make_node("Split", [weight], parts, axis=0, num_outputs=recurrent.gates),
        helper.make_node("Concat", [parts[gate] for gate in order], [f"{result}, reordered"], axis=0),
        helper.make_node("Unsqueeze", [f"{result}, reordered", "first"], [result]),
    ]


def _constant(name: str, values: list[int]) -> Any:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(values, np.int64), name))
