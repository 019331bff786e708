"""The operations as ONNX graphs. ONNX has no operator for a variance, nor one that solves equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from fairlap.bench_models.hard_operations import EPSILON
from fairlap.bench_models.onnx_graph import Graph
from fairlap.models.arrays import Arrays
from fairlap.models.operations.hard import Hard, LargeScores, Rows

GIVES = {"gives": "result"}


def _last(graph: Graph) -> str:
    return graph.constant([-1], np.int64)


def _reduced(operator: str) -> Callable[[Graph, Hard], Any]:
    return lambda graph, _operation: graph.add(operator, "numbers", _last(graph), keepdims=0, **GIVES)


def _dot(graph: Graph, _operation: Hard) -> None:
    row, column = graph.add("Unsqueeze", "a", graph.constant([1], np.int64)), graph.constant([2], np.int64)
    product = graph.add("MatMul", row, graph.add("Unsqueeze", "b", column))
    graph.add("Squeeze", product, graph.constant([1, 2], np.int64), **GIVES)


def _layernorm(graph: Graph, operation: Hard) -> None:
    assert isinstance(operation, Rows)
    ones = graph.constant(np.ones(operation.numbers))
    graph.add("LayerNormalization", "numbers", ones, epsilon=EPSILON, **GIVES)


def _variance(graph: Graph, _operation: Hard) -> None:
    mean = graph.add("ReduceMean", "numbers", _last(graph))
    centred = graph.add("Sub", "numbers", mean)
    graph.add("ReduceMean", graph.add("Mul", centred, centred), _last(graph), keepdims=0, **GIVES)


def _attention(graph: Graph, operation: Hard) -> None:
    assert isinstance(operation, LargeScores)
    scaled = graph.add("Mul", "query", graph.constant(operation.width**-0.5))
    scores = graph.add("MatMul", scaled, graph.add("Transpose", "key", perm=[0, 1, 3, 2]))
    graph.add("MatMul", graph.add("Softmax", scores, axis=-1), "value", **GIVES)


def _sort(graph: Graph, operation: Hard) -> None:
    assert isinstance(operation, Rows)
    count = graph.constant([operation.numbers], np.int64)
    graph.add_several("TopK", ("numbers", count), ("result", "places"), axis=-1, largest=0, sorted=1)


_NODES: Mapping[str, Callable[[Graph, Hard], Any]] = {
    "sum": _reduced("ReduceSum"),
    "dot": _dot,
    "matmul": lambda graph, _operation: graph.add("Gemm", "a", "b", transB=1, **GIVES),
    "softmax": lambda graph, _operation: graph.add("Softmax", "numbers", axis=-1, **GIVES),
    "logsumexp": _reduced("ReduceLogSumExp"),
    "layernorm": _layernorm,
    "variance": _variance,
    "attention": _attention,
    "subnormal": lambda graph, _operation: graph.add("Mul", "numbers", graph.constant(0.5), **GIVES),
    "special-max": _reduced("ReduceMax"),
    "special-softmax": lambda graph, _operation: graph.add("Softmax", "numbers", axis=-1, **GIVES),
    "special-sort": _sort,
}


class Implementation:
    def __init__(self, operation: Hard) -> None:
        self._operation = operation

    def build(self, weights: Arrays, batch: int) -> Any:
        graph = Graph()
        _NODES[self._operation.function](graph, self._operation)
        return graph.model(self._operation.spec(), weights, batch)
