"""What patterns ask about a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fairlap.models.onnx_import.evaluation import as_numbers
from fairlap.models.onnx_import.graph import Array, Graph, Node, Tensor
from fairlap.models.onnx_import.operators.table import OPERATORS

_MOST_OPERAND = 64  # elements of a list of axes


class GraphView:
    def __init__(self, nodes: Iterable[Node], graph: Graph, known: Mapping[str, Array]) -> None:
        self.nodes = list(nodes)
        self.graph, self.known = graph, known
        self.values = dict(graph.values)
        self.added: list[Node] = []  # nodes that replacements need before them
        self._producers = {name: node for node in self.nodes for name in node.outputs if name}
        self._uses = Counter(name for node in self.nodes for name in node.inputs)
        self._uses.update(tensor.name for tensor in graph.outputs)

    def put(self, node: Node) -> None:
        """Let later patterns see a replacement."""
        self._producers.update(dict.fromkeys(node.outputs, node))

    def add(self, node: Node, tensor: Tensor) -> None:
        self.values[tensor.name] = tensor
        self.added.append(node)
        self.put(node)

    def producer(self, name: str, *operators: str) -> Node | None:
        """Find the node that computes a value, if it is of one of these operators."""
        node = self._producers.get(name)
        return node if node is not None and (not operators or node.operator in operators) else None

    def used_once(self, name: str) -> bool:
        return self._uses[name] == 1

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def is_floating(self, name: str) -> bool:
        return "float" in self.values[name].dtype

    def number(self, name: str) -> float | None:
        """Read the value of a constant of one element."""
        array = self.known.get(name)
        if array is None or array.size != 1:
            return None
        return float(array.astype(np.float64).reshape(()))

    def other_and_number(self, node: Node) -> tuple[str, float] | None:
        """Split the two inputs of a commutative operator where one is a number."""
        left, right = node.inputs
        for other, name in ((left, right), (right, left)):
            number = self.number(name)
            if number is not None and len(self.shape(name)) <= len(self.shape(other)):
                return other, number
        return None

    def operand(self, node: Node, attribute: str) -> Any:
        """Read an attribute, which may be given as an input; None where it is missing or not known."""
        place = OPERATORS[node.operator].operands.get(attribute)
        if place is not None and place < len(node.inputs) and node.inputs[place]:
            array = self.known.get(node.inputs[place])
            return None if array is None or array.size > _MOST_OPERAND else as_numbers(array)
        return node.attributes.get(attribute)

    def reduces_last_axes(self, node: Node) -> int | None:
        """Find the first axis of a reduction, if it takes all from there on and keeps them as ones."""
        axes = self.operand(node, "axes")
        if axes is None or not node.attributes.get("keepdims", 1):
            return None
        rank = len(self.shape(node.inputs[0]))
        chosen = sorted(axis % rank for axis in ((axes,) if isinstance(axes, int) else axes))
        return chosen[0] if chosen and chosen == list(range(chosen[0], rank)) else None
