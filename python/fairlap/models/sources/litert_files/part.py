"""One graph of a LiteRT file, the main one or one inside of a loop or a branch, with its tensors by their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fairlap.models.sources.litert_files.steps import Steps, steps_of


@dataclass(frozen=True)
class Operator:
    """One operator, in the order in which they run. Negative places of inputs are not given."""

    kind: str
    options: Any  # its own, as LiteRT's schema names them
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    inside: tuple[int, ...] = ()  # places of tensors that only describe what it rounds to inside


class Part:
    def __init__(self, schema: Any, model: Any, number: int) -> None:
        self._schema, self._model = schema, model
        self.number = number
        self._graph = model.subgraphs[number]
        self.inputs: tuple[int, ...] = tuple(map(int, self._graph.inputs))
        self.outputs: tuple[int, ...] = tuple(map(int, self._graph.outputs))

    def operators(self) -> Iterator[Operator]:
        for each in self._graph.operators:
            kind = kind_of(self._schema, self._model, each)
            if kind == "CUSTOM":
                kind = f"the custom operator {decoded(self._model.operatorCodes[each.opcodeIndex].customCode)}"
            inputs, results, inside = (
                tuple(map(int, [] if places is None else places))
                for places in (each.inputs, each.outputs, each.intermediates)
            )
            yield Operator(kind, each.builtinOptions, inputs, results, inside)

    def place_of(self, tensor: Any) -> int:
        return next(place for place, each in enumerate(self._graph.tensors) if each is tensor)

    def name_of(self, place: int) -> str:
        return decoded(self._graph.tensors[place].name)

    def type_of(self, place: int) -> str:
        return type_name(self._schema, self._graph.tensors[place].type)

    def steps_of(self, place: int) -> Steps | None:
        return steps_of(self._graph.tensors[place], self.type_of(place), self.name_of(place))

    def declared_shape(self, place: int) -> tuple[int, ...]:
        shape = self._graph.tensors[place].shape
        return () if shape is None else tuple(int(size) for size in shape)

    def is_state(self, place: int) -> bool:
        """Whether it is kept from call to call, from zeros on."""
        return bool(self._graph.tensors[place].isVariable)

    def constant(self, place: int) -> np.ndarray | None:
        """Read what the file holds; None of what is computed."""
        tensor = self._graph.tensors[place]
        if (data := data_of(self._model, tensor)) is None:
            return None
        held = np.frombuffer(bytes(data), np.dtype(self.type_of(place)))
        return held.reshape(self.declared_shape(place))


def kind_of(schema: Any, model: Any, operator: Any) -> str:
    code = model.operatorCodes[operator.opcodeIndex]
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    return _name_of(schema.BuiltinOperator, number)


def type_name(schema: Any, number: int) -> str:
    return _name_of(schema.TensorType, number).lower()


@cache
def _name_of(values: Any, number: int) -> str:
    return next((name for name, value in vars(values).items() if value == number and name[0] != "_"), "")


def data_of(model: Any, tensor: Any) -> Any:
    data = model.buffers[tensor.buffer].data
    return data if data is not None and len(data) else None


def decoded(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
