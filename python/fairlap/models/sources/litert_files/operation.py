"""One operator of a LiteRT graph in ONNX, and what most translations need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairlap.models.sources.litert_files.onnx_graph import OnnxGraph, Untranslated
from fairlap.models.sources.litert_files.part import Operator, Part
from fairlap.models.sources.litert_files.steps import ACCUMULATED, IN_STEPS, Array, Steps

_INT32 = np.iinfo(np.int32)


class Parts(Protocol):
    """The graphs of a file, for operators that run another one."""

    def placed(self, number: int, given: Sequence[str], onnx: OnnxGraph) -> list[str]:
        """Write a graph of the file into an ONNX graph, with these names for its inputs, and name its outputs."""

    def part(self, number: int) -> Part: ...

    def described(self, part: Part, places: Sequence[int], names: Sequence[str]) -> list[Any]:
        """Describe tensors of a part for ONNX, under these names."""


@dataclass(frozen=True)
class Operation:
    """One operator of a LiteRT graph, and the ONNX graph that it is written into."""

    operator: Operator
    part: Part
    shapes: Sequence[tuple[int, ...]]  # of all tensors
    names: Mapping[int, str]  # in ONNX, of what is computed
    onnx: OnnxGraph
    parts: Parts
    keeps_steps: bool = False  # it moves whole numbers, and need not know which real numbers they are

    @property
    def kind(self) -> str:
        return self.operator.kind

    @property
    def options(self) -> Any:
        return self.operator.options

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.operator.inputs

    @property
    def result(self) -> int:
        return self.operator.results[0]

    def has(self, place: int) -> bool:
        return place < len(self.inputs) and self.inputs[place] >= 0

    def given(self, place: int, order: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> str:
        """Name the real numbers that it is given, with their axes in this order, and then in this shape.

        Whole numbers are moved before they become real ones, so that frameworks see them next to what computes.
        """
        tensor = self._tensor(place)
        steps = None if self.keeps_steps else self.part.steps_of(tensor)
        if tensor in self.names:
            value = self._moved(self.names[tensor], order, shape)
        else:
            array = self.constant(place)
            value = self._moved(self.hold(array if order is None else array.transpose(order), place), None, shape)
        if steps is None:
            return value
        if not steps.is_one and shape is not None:
            raise Untranslated(f"{self.kind} of values with many scales")
        return self.onnx.real(value, steps if order is None else steps.along(list(order).index(steps.axis)))

    def _moved(self, value: str, order: Sequence[int] | None, shape: Sequence[int] | None) -> str:
        value = value if order is None else self.node("Transpose", [value], perm=order)
        return value if shape is None else reshaped(self, value, shape)

    def bias(self, place: int, steps: Steps | None) -> list[str]:
        """Name a bias, if there is one, whose steps are those of the products that it is added to."""
        if not self.has(place):
            return []
        if steps is None:
            return [self.hold(self.constant(place), place)]
        array = self.constant(place)
        if array.dtype.name not in ACCUMULATED or (array < _INT32.min).any() or (array > _INT32.max).any():
            raise Untranslated(f"{self.kind} with a bias that is not in whole numbers of 32 bits")
        return [self.onnx.real(self.hold(array.astype(np.int32), place), steps)]

    def constant(self, place: int) -> Array:
        """Read a value that the file holds."""
        found = self.part.constant(self._tensor(place))
        if found is None:
            raise Untranslated(f"{self.kind} whose input {place + 1} is computed")
        return found

    def real_constant(self, place: int) -> Array:
        steps, held = self.steps(place), self.constant(place)
        return held if steps is None else steps.real(held)

    def steps(self, place: int) -> Steps | None:
        return self.part.steps_of(self._tensor(place))

    def is_in_steps(self, place: int) -> bool:
        steps = self.steps(place)
        return steps is not None and steps.dtype in IN_STEPS

    def shape(self, place: int) -> tuple[int, ...]:
        return self.shapes[self._tensor(place)]

    def type(self, place: int) -> str:
        """By NumPy's name."""
        return self.part.type_of(self._tensor(place))

    @property
    def result_shape(self) -> tuple[int, ...]:
        return self.shapes[self.result]

    @property
    def result_type(self) -> str:
        return self.part.type_of(self.result)

    def rounded(self, value: str, result: int) -> str:
        """Round a result to its steps, where it has any and is not rounded to them yet."""
        steps = None if self.keeps_steps else self.part.steps_of(result)
        return value if steps is None or value in self.onnx.in_steps else self.onnx.rounded(value, steps)

    def moved_result(self, value: str, order: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> str:
        """Round the result, and then bring its axes into this order, or it into this shape."""
        rounded = self.rounded(value, self.result)
        found = self._moved(rounded, order, shape)
        if rounded in self.onnx.in_steps:
            self.onnx.in_steps.add(found)
        return found

    def hold(self, array: Array, place: int | None = None) -> str:
        """Hold a constant, under the name of what it is given there."""
        return self.onnx.hold(array, "constant" if place is None else self.part.name_of(self._tensor(place)))

    def node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        return self.onnx.node(kind, inputs, **attributes)

    def _tensor(self, place: int) -> int:
        if not self.has(place):
            raise Untranslated(f"{self.kind} without its input {place + 1}")
        return self.inputs[place]


Translation = Callable[[Operation], str | Sequence[str]]
"""Write an operator, and return the name of its result, or those of several."""

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


def product_steps(operation: Operation, place: int = 0) -> Steps | None:
    """Of products of the input at this place with weights, which are the second one: by channel as the weights' are."""
    value, weight = operation.steps(place), operation.steps(1)
    if value is None or weight is None:
        return None
    if not value.is_one:
        raise Untranslated(f"{operation.kind} of values with many scales")
    return Steps("int32", value.scales * weight.scales, np.zeros(len(weight.scales), np.int64))
