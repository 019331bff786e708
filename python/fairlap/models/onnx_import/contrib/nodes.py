"""Write the standard nodes that one node of another domain stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Expansion:
    """The nodes that replace one. Its own inputs and outputs keep their names."""

    def __init__(self, node: Any, name: str) -> None:
        from onnx import helper

        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes: dict[str, Any] = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        self.nodes: list[Any] = []
        self._name = name

    def input(self, place: int) -> str:
        """Empty where it is missing."""
        return self.inputs[place] if place < len(self.inputs) else ""

    def make(self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any) -> str:
        from onnx import helper

        name = f"{self._name}/{len(self.nodes)}"
        results = list(outputs) or [name]
        self.nodes.append(helper.make_node(operator, list(inputs), results, name=name, **attributes))
        return results[0]

    def several(self, operator: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        names = [f"{self._name}/{len(self.nodes)}.{number}" for number in range(count)]
        self.make(operator, inputs, names, **attributes)
        return names

    def constant(self, array: Any) -> str:
        from onnx import numpy_helper

        return self.make("Constant", [], value=numpy_helper.from_array(np.asarray(array)))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: float, like: str) -> str:
        """Write a number in the type of another value."""
        return self.make("CastLike", [self.constant(np.array(value, np.float32)), like])

    def with_bias(self) -> str:
        return self.make("Add", self.inputs[:2]) if self.input(1) else self.input(0)

    def product(self, left: str, right: str, bias: str) -> None:
        """End with a product of matrices."""
        if bias:
            self.make("Add", [self.make("MatMul", [left, right]), bias], self.outputs[:1])
        else:
            self.make("MatMul", [left, right], self.outputs[:1])
