"""A model as one graph: a layer adds its weights, its nodes and its multiply-accumulates at once.

Nothing here needs ONNX or NumPy, so that models are listed quickly; ``onnx_model`` writes the graph out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fairlap.models.spec import BATCH, LEARNS, Constant, Fill, Normal, Spec, Tensor, Weight

RESTORED = 2**0.5
"""The size of a linear layer whose input has passed a ReLU, which halves the power."""


class Value(NamedTuple):
    """What a node gives, with its sizes in one item; of a weight or a constant all of its sizes."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """A node. Of a constant, ``values`` makes what it holds."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    values: Callable[[], Any] | None = None
    dtype: str = "float32"


class GraphModel(Hashable, Protocol):
    """What a module ``spec`` of a model that is one graph has, and a size of a family of them."""

    @property
    def NET(self) -> Net: ...  # noqa: N802  (as modules have it)

    @property
    def SPEC(self) -> Spec: ...  # noqa: N802


@dataclass(frozen=True, eq=False)
class Sized:
    """A size of a family."""

    NET: Net
    SPEC: Spec


class Net:
    def __init__(self, *inputs: Tensor) -> None:
        self.inputs = inputs
        self.outputs: tuple[Tensor, ...] = ()
        self.steps: list[Step] = []
        self._weights: dict[str, Weight] = {}
        self.macs = 0  # of one item
        self._parts = 1  # of an item, that count as items

    def input(self, name: str) -> Value:
        [found] = [each for each in self.inputs if each.name == name]
        return Value(name, tuple(int(size) for size in found.shape[1:]))

    def output(self, value: Value, name: str) -> None:
        """Call the value so; outputs are in the order in which they are named."""
        self.add("Identity", value, shape=value.shape, gives=name)
        self.outputs = (*self.outputs, Tensor(name, (BATCH, *value.shape), Constant(0.0)))

    def spec(self, name: str, *, task: str, published: str, parameters: int, **more: Any) -> Spec:
        """Describe the model; ``parameters`` are those that were published."""
        return Spec(
            name=name,
            task=task,
            inputs=self.inputs,
            outputs=self.outputs,
            weights=self.weights,
            parameters=parameters,
            gmacs_per_item=self.macs / 1e9,
            published=published,
            **{"modes": LEARNS, "trained_in": ("fp32",), **more},
        )

    def weight(self, name: str, shape: tuple[int, ...], fill: Fill, *, trained: bool = True) -> Value:
        """Add a weight; layers that give the same name share it."""
        weight = Weight(name, shape, fill, trained)
        if self._weights.setdefault(name, weight) != weight:
            raise ValueError(f"the layers that share {name} want it in different ways")
        return Value(name, shape)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return tuple(self._weights.values())

    def constant(self, shape: tuple[int, ...], values: Callable[[], Any], dtype: str = "float32") -> Value:
        name = f"constant/{len(self.steps)}"
        self.steps.append(Step("Constant", (), (name,), {}, values, dtype))
        return Value(name, shape)

    def number(self, value: float) -> Value:
        return self.constant((), lambda: value)

    def add(self, operator: str, *inputs: Value, shape: tuple[int, ...], gives: str = "", **attributes: Any) -> Value:
        """Add a node with one output."""
        [found] = self.add_split(operator, *inputs, shapes=[shape], gives=gives, **attributes)
        return found

    def add_split(
        self, operator: str, *inputs: Value, shapes: list[tuple[int, ...]], gives: str = "", **attributes: Any
    ) -> list[Value]:
        """Add a node with an output for each of the shapes."""
        stem = gives or f"{operator.lower()}_{len(self.steps)}"
        names = (stem,) if len(shapes) == 1 else tuple(f"{stem}_{number}" for number in range(len(shapes)))
        self.steps.append(Step(operator, tuple(each.name for each in inputs), names, attributes))
        return [Value(name, shape) for name, shape in zip(names, shapes, strict=True)]

    def sum(self, one: Value, other: Value) -> Value:
        """``other`` may be a weight that is added to every item."""
        return self.add("Add", one, other, shape=one.shape)

    def product(self, one: Value, other: Value) -> Value:
        return self.add("Mul", one, other, shape=one.shape)

    def matrix_product(self, one: Value, other: Value, shape: tuple[int, ...]) -> Value:
        self.macs += self._parts * math.prod(shape) * one.shape[-1]
        return self.add("MatMul", one, other, shape=shape)

    def reshape(self, value: Value, *shape: int) -> Value:
        sizes = self.constant((len(shape) + 1,), lambda: (0, *shape), "int64")  # 0: as many items as there are
        return self.add("Reshape", value, sizes, shape=shape)

    def taken_apart(self, value: Value) -> Value:
        """Let what is along the first axis of an item count as items, until it is put together."""
        count, *rest = value.shape
        sizes = self.constant((len(rest) + 1,), lambda: (-1, *rest), "int64")
        self._parts = count
        return self.add("Reshape", value, sizes, shape=tuple(rest))

    def put_together(self, value: Value) -> Value:
        shape, self._parts = (self._parts, *value.shape), 1
        sizes = self.constant((len(shape) + 1,), lambda: (-1, *shape), "int64")
        return self.add("Reshape", value, sizes, shape=shape)

    def transpose(self, value: Value, *order: int) -> Value:
        """``order`` counts the axes of an item from 1."""
        shape = tuple(value.shape[axis - 1] for axis in order)
        return self.add("Transpose", value, shape=shape, perm=[0, *order])

    def elementwise(self, operator: str, value: Value, **attributes: Any) -> Value:
        return self.add(operator, value, shape=value.shape, **attributes)

    def linear(self, name: str, value: Value, outward: int, *, bias: bool = True, size: float = 1.0) -> Value:
        """``size`` is that of what comes out when what goes in has size one."""
        inward = value.shape[-1]
        weight = self.weight(f"{name}.weight", (outward, inward), Normal(size * inward**-0.5))
        turned = self.add("Transpose", weight, shape=(inward, outward), perm=[1, 0])
        found = self.matrix_product(value, turned, (*value.shape[:-1], outward))
        return self.sum(found, self.weight(f"{name}.bias", (outward,), Normal(0.1))) if bias else found
