"""Plan the layout of images, so that a library that wants channels last transposes once at each end.

Values of three and more axes have their channels last from the first convolution on, through everything that can do
without a certain order, and are turned back where an operator needs the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairlap.models.onnx_import.graph import Node, Tensor, bodies_of
from fairlap.models.onnx_import.operators.table import EXACT, OPERATORS, Operator


@dataclass(frozen=True)
class Step:
    """One call of a function of a library."""

    function: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    exact: bool = False  # moves values, and computes none


def channels_last(rank: int) -> tuple[int, ...]:
    """Order the file's axes as the library has them."""
    return (0, *range(2, rank), 1)


def kernel_order(rank: int) -> tuple[int, ...]:
    """(out, in, ...) becomes (..., in, out)."""
    return (*range(2, rank), 1, 0)


def turned_weights(nodes: Iterable[Node], weights: Iterable[str]) -> set[str]:
    """Weights that are only kernels or turned matrices: they are turned once, when they are prepared."""
    as_kernel, otherwise = _uses(nodes)
    return (as_kernel - otherwise).intersection(weights)


def _uses(nodes: Iterable[Node]) -> tuple[set[str], set[str]]:
    """Names that are read as kernels, and as anything else, also inside of bodies."""
    as_kernel: set[str] = set()
    otherwise: set[str] = set()
    for node in nodes:
        captured = 0
        for body in bodies_of(node):
            inside, otherwise_inside = _uses(body.nodes)
            as_kernel |= inside
            otherwise |= otherwise_inside.union(tensor.name for tensor in body.outputs)
            captured = sum(tensor.name in node.inputs for tensor in body.inputs)  # they come last, and keep their names
        for place, name in enumerate(node.inputs[: len(node.inputs) - captured]):
            kernel = place in OPERATORS[node.operator].kernels
            turned = node.operator == "Linear" and place == 1 and node.attributes.get("turned")
            (as_kernel if kernel or turned else otherwise).add(name)
    return as_kernel, otherwise


class LayoutPlan:
    """Add nodes in order; ``steps`` is what to compute."""

    def __init__(self, library: Any, values: Mapping[str, Tensor], turned: Set[str]) -> None:
        self.library, self.values, self.turned = library, values, turned
        self.steps: list[Step] = []
        self._last: set[str] = set()  # values with channels last
        self._views: dict[tuple[str, str, int], str] = {}

    def add(self, node: Node, operator: Operator, attributes: dict[str, Any], inputs: list[str]) -> None:
        if not self.library.channels_last:
            self._emit(operator, attributes, inputs, node)
        elif operator.layout == "spatial":
            self._add_spatial(node, operator, attributes, inputs)
        elif node.operator == "Linear" and inputs[1] in self.turned:
            self._emit(operator, {**attributes, "turned": False}, [self.in_file(inputs[0]), *inputs[1:]], node)
        elif node.operator == "Transpose" and inputs[0] in self._last:
            rank = self._rank(inputs[0])
            perm = attributes.get("perm") or tuple(reversed(range(rank)))
            order = channels_last(rank)
            self._emit(operator, {"perm": tuple(order.index(axis) for axis in perm)}, inputs, node)
        elif not self._follows(node, operator, attributes, inputs):
            self._emit(operator, attributes, [self.in_file(name) for name in inputs], node)

    def in_file(self, name: str) -> str:
        """Name the value in the file's order."""
        if name not in self._last:
            return name
        order = channels_last(self._rank(name))
        return self._view(name, "in_file", tuple(order.index(axis) for axis in range(len(order))))

    def _add_spatial(self, node: Node, operator: Operator, attributes: dict[str, Any], inputs: list[str]) -> None:
        chosen = [self._image(inputs[0])]
        for place, name in enumerate(inputs[1:], 1):
            if place in operator.kernels and name not in self.turned:
                chosen.append(self._view(name, "kernel", kernel_order(self._rank(name))))
            else:
                chosen.append(self.in_file(name))
        self._emit(operator, attributes, chosen, node)
        self._last.update(name for name in node.outputs if name and self._rank(name) > 2)

    def _follows(self, node: Node, operator: Operator, attributes: dict[str, Any], inputs: list[str]) -> bool:
        """Add an operator that can take its images with channels last, if one has them so."""
        images = [name for name in inputs if name in self._last]
        if not images:
            return False
        rank = self._rank(images[0])
        if operator.layout == "elementwise":
            if any(self._rank(name) > rank for name in filter(None, inputs)):
                return False
            chosen = [self._aligned(name, rank) if name else "" for name in inputs]
        elif operator.layout == "axes" and operator.renumber is not None:
            renumbered = operator.renumber(attributes, channels_last(rank))
            if renumbered is None or inputs[0] not in self._last:
                return False
            attributes, chosen = renumbered, [self._image(name) for name in inputs]
        else:
            return False
        self._emit(operator, attributes, chosen, node)
        self._last.update(name for name in node.outputs if name and self._rank(name) == rank)
        return True

    def _image(self, name: str) -> str:
        if name in self._last or self._rank(name) < 3:
            return name
        return self._view(name, "last", channels_last(self._rank(name)))

    def _aligned(self, name: str, rank: int) -> str:
        """Align an operand with images of so many axes."""
        own = self._rank(name)
        if name in self._last or own == 0:
            return name
        if own == rank:
            return self._image(name)
        key = (name, "aligned", rank)
        if key not in self._views:
            shape = (*(1,) * (rank - own), *self.values[name].shape)
            wide = f"{name}/{rank}"
            self._views[key] = wide
            order = channels_last(rank)
            self._reorder(name, wide, shape, order)
        return self._views[key]

    def _view(self, name: str, kind: str, perm: tuple[int, ...]) -> str:
        key = (name, kind, len(perm))
        if key not in self._views:
            shape = self.values[name].shape
            if name in self._last:
                shape = tuple(shape[axis] for axis in channels_last(len(shape)))
            self._views[key] = f"{name}/{kind}"
            self._reorder(name, self._views[key], shape, perm)
        return self._views[key]

    def _reorder(self, name: str, result: str, shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
        """Add a transposition, or a reshape where only axes of size one move."""
        moved = [axis for axis in perm if shape[axis] != 1]
        library = self.library
        if moved == sorted(moved):
            wanted = tuple(shape[axis] for axis in perm)
            self.steps.append(Step(partial(_reshaped, library, wanted), (name,), (result,)))
            return
        self.steps.append(Step(partial(_transposed, library, shape, perm), (name,), (result,)))

    def _rank(self, name: str) -> int:
        return len(self.values[name].shape)

    def _emit(self, operator: Operator, attributes: dict[str, Any], inputs: list[str], node: Node) -> None:
        if operator.bind is None:
            function: Callable[..., Any] = partial(operator.compute, self.library, **attributes)
        else:
            function = operator.bind(self.library, attributes)
        self.steps.append(Step(function, tuple(inputs), node.outputs, operator.name in EXACT))


def _reshaped(library: Any, shape: tuple[int, ...], value: Any) -> Any:
    return library.reshape(value, shape)


def _transposed(library: Any, shape: tuple[int, ...], perm: tuple[int, ...], value: Any) -> Any:
    value = value if len(value.shape) == len(shape) else library.reshape(value, shape)
    return library.transpose(value, perm)
