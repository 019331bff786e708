"""One operator of a LiteRT graph, the ONNX graph that it is written into, and what most translations need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph

Array = npt.NDArray[Any]


class Untranslated(Exception):
    """There is no ONNX operator for it, or not for what it is given. The message is the reason."""


class OnnxGraph:
    """What is written so far. Weights have the file's names, and other values numbers."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: dict[str, Array] = {}
        self._count = 0

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node that gives one value, and return the name of that."""
        from onnx import helper

        self._count += 1
        names = list(outputs) or [f"value {self._count}"]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{kind} {self._count}", **attributes))
        return names[0]

    def hold(self, array: Array, name: str) -> str:
        """Hold a constant once, under its name or, where another one has that, the name with a number."""
        number, own = 1, name
        while own in self.initializers and not _are_same(self.initializers[own], array):
            number, own = number + 1, f"{name}#{number}"
        self.initializers[own] = np.ascontiguousarray(array)
        return own


def _are_same(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)


@dataclass(frozen=True)
class Operation:
    """One operator of a LiteRT graph, and the ONNX graph that it is written into."""

    kind: str
    options: Any  # its own, as LiteRT's schema names them
    inputs: tuple[int, ...]  # places of tensors; negative ones are not given
    result: int
    graph: TfliteGraph
    shapes: Sequence[tuple[int, ...]]  # of all tensors
    names: Mapping[int, str]  # in ONNX, of what is computed
    onnx: OnnxGraph

    def has(self, place: int) -> bool:
        return place < len(self.inputs) and self.inputs[place] >= 0

    def given(self, place: int) -> str:
        """Name a value that it is given, by its name in ONNX."""
        tensor = self._tensor(place)
        return self.names[tensor] if tensor in self.names else self.hold(self.constant(place), place)

    def constant(self, place: int) -> Array:
        """Read a value that the file holds."""
        found = self.graph.constant(self._tensor(place))
        if found is None:
            raise Untranslated(f"{self.kind} whose input {place + 1} is computed")
        return found

    def shape(self, place: int) -> tuple[int, ...]:
        return self.shapes[self._tensor(place)]

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.shapes[self.result]

    @property
    def result_type(self) -> str:
        """By NumPy's name."""
        return self.graph.type_of(self.result)

    def hold(self, array: Array, place: int | None = None) -> str:
        """Hold a constant, under the name of what it is given there."""
        return self.onnx.hold(array, "constant" if place is None else self.graph.name_of(self._tensor(place)))

    def node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        return self.onnx.node(kind, inputs, **attributes)

    def _tensor(self, place: int) -> int:
        if not self.has(place):
            raise Untranslated(f"{self.kind} without its input {place + 1}")
        return self.inputs[place]


Translation = Callable[[Operation], str]
"""Write an operator, and return the name of its result."""

LIMITS = {"RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1), "RELU_0_TO_1": (0, 1)}
ONE_VALUE = {
    "ABS": "Abs", "CEIL": "Ceil", "COS": "Cos", "ELU": "Elu", "EXP": "Exp", "FLOOR": "Floor", "HARD_SWISH": "HardSwish",
    "LOG": "Log", "LOGICAL_NOT": "Not", "LOGISTIC": "Sigmoid", "NEG": "Neg", "RELU": "Relu", "ROUND": "Round",
    "SIN": "Sin", "SQRT": "Sqrt", "TANH": "Tanh",
}  # fmt: skip


def whole_numbers(values: Sequence[int]) -> Array:
    return np.array(values, np.int64)


def reshaped(operation: Operation, value: str, shape: Sequence[int]) -> str:
    return operation.node("Reshape", [value, operation.hold(whole_numbers(shape))])


def activated(operation: Operation, value: str) -> str:
    """Apply the activation that is part of an operator, by its number. LiteRT's kernels know no others."""
    number = getattr(operation.options, "fusedActivationFunction", 0)
    if number == 0:
        return value
    names = {1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}
    if number not in names:
        raise Untranslated(f"{operation.kind} with the activation {number}")
    return elementwise(operation, names[number], value)


def elementwise(operation: Operation, kind: str, value: str) -> str:
    if kind in LIMITS:
        low, high = (operation.hold(np.array(each, np.float32)) for each in LIMITS[kind])
        return operation.node("Clip", [value, low, high])
    if kind == "RSQRT":
        return operation.node("Reciprocal", [operation.node("Sqrt", [value])])
    if kind == "SQUARE":
        return operation.node("Mul", [value, value])
    return operation.node(ONE_VALUE[kind], [value])


def bias_of(operation: Operation, place: int) -> list[str]:
    return [operation.hold(operation.constant(place), place)] if operation.has(place) else []
