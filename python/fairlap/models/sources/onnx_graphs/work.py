"""How many multiplications one call of an ONNX graph takes: those of its convolutions, matrix products and recurrences.

Element-wise operators, reductions and look-ups count nothing, as in PyTorch's own counter. An operator that may
multiply and is not counted here is named, so that nobody takes a part of the work for all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlap.models.onnx_import.subgraphs import names_read_by
from fairlap.models.sources.onnx_graphs.shapes import Shape, Shapes, inferred_graph, known_shapes

_STANDARD = ("", "ai.onnx")
_PRODUCTS_IN_ONE = {
    "AffineGrid", "Attention", "CausalConvWithState", "DFT", "DeformConv", "Det", "LinearAttention", "STFT",
    "SequenceMap",
}  # fmt: skip
"""Standard operators that multiply arrays, or run a graph that may, in ways that are not counted here."""


@dataclass(frozen=True)
class CountedWork:
    """Of one call. With operators that are not counted it is a lower bound."""

    multiplications: int
    uncounted: tuple[str, ...] = ()  # operators, each once, with why where that is not plain


def counted_work(model: Any) -> CountedWork:
    """Of a bound graph, with the subgraphs whose number of runs is known."""
    from onnx import inliner

    if model.functions:
        model = inliner.inline_local_functions(model)
    graph = inferred_graph(model)
    if graph is None:
        return CountedWork(0, ("operators of unknown size, as no shapes can be inferred",))
    count = _Count(_shapes_in(graph))
    total = count.of_graph(graph, {value.name for value in graph.input})
    return CountedWork(total, tuple(sorted(count.uncounted)))


def most_elements(model: Any) -> int:
    """Of any value of a bound graph whose shape can be inferred."""
    graph = inferred_graph(model)
    shapes = {} if graph is None else _shapes_in(graph)
    return max(map(math.prod, shapes.values()), default=0)


def _shapes_in(graph: Any) -> Shapes:
    own = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return own | known_shapes((*graph.input, *graph.value_info, *graph.output))


@dataclass
class _Count:
    shapes: Shapes
    constants: dict[str, Any] = field(default_factory=dict)  # tensors, by name
    uncounted: set[str] = field(default_factory=set)

    def of_graph(self, graph: Any, varies: set[str]) -> int:
        """``varies`` holds what may differ between calls; the rest may be computed once, ahead of all calls."""
        self.constants |= _constants_in(graph)
        total = 0
        for node in graph.node:
            if not varies.isdisjoint(names_read_by(node)):
                varies.update(node.output)
                total += self._of_node(node, varies)
        return total

    def _of_node(self, node: Any, varies: set[str]) -> int:
        kind = node.op_type
        if node.domain not in _STANDARD:
            return self._unknown(f"{node.domain}::{kind}")
        if kind in _SUBGRAPHS:
            return _SUBGRAPHS[kind](self, node, varies)
        if kind in _PRODUCTS_IN_ONE:
            return self._unknown(kind)
        if kind not in _FORMULAS:
            return 0
        formula, places = _FORMULAS[kind]
        inputs = list(node.input) if places is None else [node.input[place] for place in places]
        shapes = [self.shapes.get(name) for name in (*inputs, node.output[0] or inputs[0])]
        known = [shape for shape in shapes if shape is not None]
        if len(known) < len(shapes):
            return self._unknown(f"{kind} of unknown size")
        found = formula(node, *known)
        return self._unknown(f"{kind} {_WHY[kind]}") if found is None else found

    def _unknown(self, what: str) -> int:
        self.uncounted.add(what)
        return 0

    def if_(self, node: Any, varies: set[str]) -> int:
        counts = {self._of_body(each.g, varies) for each in node.attribute if each.name.endswith("_branch")}
        return counts.pop() if len(counts) == 1 else self._unknown("If with branches of different work")

    def loop(self, node: Any, varies: set[str]) -> int:
        body = _attributes(node)["body"].g
        once = self._of_body(body, varies)
        if once == 0:
            return 0
        trips = _single_value(self.constants.get(node.input[0]))
        if trips is None or not self._never_ends_early(node, body):
            return self._unknown("Loop of unknown length")
        return once * int(trips)

    def _never_ends_early(self, node: Any, body: Any) -> bool:
        constants = self.constants | _constants_in(body)
        at_first = node.input[1] if len(node.input) > 1 else ""
        goes_on = body.output[0].name
        passed_on = {each.output[0]: each.input[0] for each in body.node if each.op_type == "Identity"}
        while goes_on in passed_on:
            goes_on = passed_on[goes_on]
        return (at_first == "" or bool(_single_value(constants.get(at_first)))) and (
            goes_on == body.input[1].name or bool(_single_value(constants.get(goes_on)))
        )

    def scan(self, node: Any, varies: set[str]) -> int:
        attributes = _attributes(node)
        body = attributes["body"].g
        once = self._of_body(body, varies)
        if once == 0:
            return 0
        scanned = self.shapes.get(node.input[-attributes["num_scan_inputs"].i])
        if scanned is None or len(node.input) != len(body.input):  # the first version has lengths of sequences as well
            return self._unknown("Scan of unknown length")
        axes = attributes["scan_input_axes"].ints if "scan_input_axes" in attributes else [0]
        return once * scanned[axes[0]]

    def _of_body(self, graph: Any, varies: set[str]) -> int:
        """Its names hide those outside it, and end with it."""
        inner = _Count(self.shapes | _shapes_in(graph), dict(self.constants), self.uncounted)
        return inner.of_graph(graph, varies | {value.name for value in graph.input})


_SUBGRAPHS: Mapping[str, Callable[[_Count, Any, set[str]], int]] = {
    "If": _Count.if_,
    "Loop": _Count.loop,
    "Scan": _Count.scan,
}


def _constants_in(graph: Any) -> dict[str, Any]:
    nodes = (node for node in graph.node if node.op_type == "Constant")
    made = {node.output[0]: each.t for node in nodes for each in node.attribute if each.name == "value"}
    return {tensor.name: tensor for tensor in graph.initializer} | made


def _single_value(tensor: Any) -> Any:
    """None where it is not known, or not a single one."""
    from onnx import numpy_helper

    if tensor is None or math.prod(tensor.dims) != 1:
        return None
    return numpy_helper.to_array(tensor).item()


def _attributes(node: Any) -> dict[str, Any]:
    return {each.name: each for each in node.attribute}


def _product(node: Any, left: Shape, right: Shape, out: Shape) -> int:
    turned = "transA" in (attributes := _attributes(node)) and attributes["transA"].i
    return math.prod(out) * (left[0] if turned or len(left) == 1 else left[-1])


def _convolution(node: Any, data: Shape, kernel: Shape, out: Shape) -> int:
    return math.prod(out) * math.prod(kernel[1:])


def _turned_convolution(node: Any, data: Shape, kernel: Shape, out: Shape) -> int:
    return math.prod(data) * math.prod(kernel[1:])


def _recurrence(node: Any, data: Shape, by_input: Shape, by_state: Shape, out: Shape) -> int | None:
    """Every step of every sequence multiplies both matrices of each direction."""
    if len(node.input) > 4 and node.input[4]:
        return None
    return math.prod(data[:2]) * (math.prod(by_input) + math.prod(by_state))


def _einsum(node: Any, *shapes: Shape) -> int | None:
    """Of two operands; what only one of them has, and the result has not, can be added up first."""
    operands = shapes[:-1]
    if len(operands) < 2:
        return 0
    equation = _attributes(node)["equation"].s.decode().replace(" ", "")
    terms, _, result = equation.partition("->")
    if len(operands) > 2 or "." in equation:
        return None
    left, right = terms.split(",")
    if "->" not in equation:
        result = "".join(label for label in left + right if (left + right).count(label) == 1)
    sizes: dict[str, int] = {}
    for labels, shape in zip((left, right), operands, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return math.prod(size for label, size in sizes.items() if label in result or (label in left and label in right))


_WHY = dict.fromkeys(("LSTM", "GRU", "RNN"), "with sequences of their own lengths") | {
    "Einsum": "of more than two arrays, or with an ellipsis"
}
_FORMULAS: Mapping[str, tuple[Callable[..., int | None], tuple[int, ...] | None]] = {
    **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger"), (_product, (0, 1))),
    "QLinearMatMul": (_product, (0, 3)),
    **dict.fromkeys(("Conv", "ConvInteger"), (_convolution, (0, 1))),
    "QLinearConv": (_convolution, (0, 3)),
    "ConvTranspose": (_turned_convolution, (0, 1)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (_recurrence, (0, 1, 2))),
    "Einsum": (_einsum, None),
}
"""How its multiplications follow from the shapes of some of its inputs, all where it is None, and of its result."""
