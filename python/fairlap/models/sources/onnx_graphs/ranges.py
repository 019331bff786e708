"""The range of every integer input of an ONNX graph, by following it to what it indexes, counts or is compared with.

Out of the rows of a table, frameworks differ: some raise, one returns NaN, one clamps, one changes other rows silently.
Of sequences that are said to be longer than they are, too: one raises, and others take the whole sequence.
Within it, values that a model never meets make it ill-conditioned: of bytes that are all 0 or 1, a layer normalisation
leaves rounding alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.onnx_import.subgraphs import graphs_in
from fairlap.models.sources.onnx_graphs.shapes import inferred_graph, known_shapes
from fairlap.models.sources.sizes import Bounds

LOOPS = range(1, 17)  # how often a loop runs whose count is an input
_MOST_KNOWN = 2**16  # elements of a constant that is computed
_BOOL = 9
_KEEPS_VALUES = {
    "Cast", "Concat", "Expand", "Flatten", "Gather", "Identity", "Max", "Min", "Pad", "Reshape", "Slice", "Split",
    "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip
# Which input has the length of each sequence, and which of the first one's axes has the steps.
_LENGTHS = {"LSTM": (4, 0), "GRU": (4, 0), "RNN": (4, 0), "ReverseSequence": (1, 0), "Attention": (6, -2)}
_STEPS_OF = {"Attention": 1}  # the input that has the steps, where it is not the first
_INDEXES = {"Gather": 0, "GatherElements": 0, "ScatterElements": 0}  # the default of the axis
_COMPUTED = {"Cast", "Concat", "Expand", "Identity", "Range", "Reshape", "Squeeze", "Sub", "Add", "Tile", "Unsqueeze"}
_ORDERS = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}

Origins = Mapping[str, int]  # for each input whose values a value holds, what was added to them


@dataclass
class _Found:
    rows: list[range] = field(default_factory=list)  # outside of them, an index points nowhere
    used: list[range] = field(default_factory=list)  # what the model distinguishes, or takes
    equals: list[int] = field(default_factory=list)

    def bounds(self) -> Bounds | None:
        """None where 0 and 1 are as good as other values."""
        if self.rows:
            low, high = max(each.start for each in self.rows), min(each.stop for each in self.rows)
            return Bounds(low, high, required=True) if low < high else None
        if self.used:
            return Bounds(min(each.start for each in self.used), max(each.stop for each in self.used))
        if set(self.equals) <= {0, 1}:
            return None
        return Bounds(self.equals[0], self.equals[0] + 1)  # one of the cases that the model knows


def integer_bounds(model: Any) -> dict[str, Bounds]:
    """For each input that its graph shows more of than that it is an integer."""
    trace = _Trace(model)
    trace.follow(model.graph)
    found = {name: each.bounds() for name, each in trace.found.items()}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


class _Trace:
    def __init__(self, model: Any) -> None:
        inferred = inferred_graph(model)
        self._shapes = {} if inferred is None else known_shapes((*inferred.input, *inferred.value_info))
        self._opsets = list(model.opset_import)
        self._known: dict[str, npt.NDArray[Any]] = {}
        self._holds: dict[str, Origins] = {}
        self.found: dict[str, _Found] = {}
        constants = {tensor.name for tensor in model.graph.initializer}
        for value in model.graph.input:
            if value.name not in constants:
                self._holds[value.name] = {value.name: 0}
                self.found[value.name] = _Found()

    def follow(self, graph: Any) -> None:
        """In the order of the nodes, which are sorted. The graphs inside of a node see all that is outside."""
        from onnx import numpy_helper

        for tensor in graph.initializer:
            self._shapes[tensor.name] = tuple(tensor.dims)
            if np.prod(tensor.dims, dtype=object) <= _MOST_KNOWN:
                self._known[tensor.name] = numpy_helper.to_array(tensor)
        for node in graph.node:
            if not self._computed(node):
                self._record(node)
                self._record_lengths(node)
                self._pass_on(node)
            for inner in graphs_in(node):
                self.follow(inner)

    def _computed(self, node: Any) -> bool:
        if node.op_type != "Constant":
            names = [name for name in node.input if name]
            if node.op_type not in _COMPUTED or node.domain or any(name not in self._known for name in names):
                return False
        from onnx.reference import ReferenceEvaluator

        try:
            results = ReferenceEvaluator(_model_of(node, self._opsets)).run(
                None, {name: self._known[name] for name in node.input if name}
            )
        except Exception:  # its operators raise what they like; then it is unknown
            return False
        for name, result in zip(node.output, results, strict=False):
            array = np.asarray(result)
            self._shapes[name] = array.shape
            if array.dtype.kind in "biuf" and array.size <= _MOST_KNOWN:
                self._known[name] = array
        return True

    def _record(self, node: Any) -> None:
        inputs = list(node.input)
        if node.op_type in _INDEXES and len(inputs) > 1 and inputs[0] in self._shapes:
            axis = next((each.i for each in node.attribute if each.name == "axis"), _INDEXES[node.op_type])
            sizes = self._shapes[inputs[0]]
            if -len(sizes) <= axis < len(sizes):
                self._add(inputs[1], "rows", range(sizes[axis]))
        elif node.op_type == "OneHot" and inputs[1] in self._known:
            self._add(inputs[0], "rows", range(int(self._known[inputs[1]].reshape(-1)[0])))
        elif node.op_type == "Clip":
            ends = [self._known.get(name) for name in inputs[1:3]]
            if len(ends) == 2 and all(each is not None and each.size == 1 for each in ends):
                low, high = (float(each.reshape(-1)[0]) for each in ends if each is not None)
                self._add(inputs[0], "used", range(int(low), int(high) + 1))
        elif node.op_type == "Loop":
            self._add(inputs[0], "used", LOOPS)
        elif node.op_type == "Equal" or node.op_type in _ORDERS:
            for value, other in (inputs, inputs[::-1]):
                if other in self._known:
                    self._compared(value, np.unique(self._known[other]), node.op_type)

    def _record_lengths(self, node: Any) -> None:
        place, axis = _LENGTHS.get(node.op_type, (0, 0))
        if node.domain or not 0 < place < len(node.input):
            return
        sizes = self._shapes.get(node.input[_STEPS_OF.get(node.op_type, 0)], ())
        for each in node.attribute:
            if each.name == "time_axis" or (each.name == "layout" and each.i):
                axis = each.i
        if -len(sizes) <= axis < len(sizes):
            self._add(node.input[place], "rows", range(1, sizes[axis] + 1))

    def _compared(self, value: str, constants: npt.NDArray[Any], how: str) -> None:
        numbers = sorted({int(each) for each in constants if np.isfinite(each)})
        if how in _ORDERS:  # below 0 it is asked whether an index counts from the end
            for number in (each for each in numbers if each > 0):
                self._add(value, "used", range(number - 1, number + 2))
        elif len(numbers) > 1 and numbers[-1] - numbers[0] + 1 == len(numbers):
            self._add(value, "used", range(numbers[0], numbers[-1] + 1))
        else:
            for number in numbers:
                self._add(value, "equals", number)

    def _add(self, value: str, kind: str, what: range | int) -> None:
        for name, added in self._holds.get(value, {}).items():
            own = range(what.start - added, what.stop - added) if isinstance(what, range) else what - added
            getattr(self.found[name], kind).append(own)

    def _pass_on(self, node: Any) -> None:
        origins: Origins = {}
        if node.op_type in ("Add", "Sub") and len(node.input) == 2:
            origins = self._shifted(node)
        elif node.op_type in _KEEPS_VALUES and not _to_bool(node):
            for name in _values_of(node):
                for origin, added in self._holds.get(name, {}).items():
                    if abs(added) <= abs(origins.get(origin, added)):
                        origins = {**origins, origin: added}
        for name in node.output:
            self._holds[name] = origins

    def _shifted(self, node: Any) -> Origins:
        value, other = node.input
        if node.op_type == "Add" and value in self._known:
            value, other = other, value
        constant = self._known.get(other)
        if constant is None or constant.size != 1 or float(constant.reshape(-1)[0]) % 1:
            return {}
        sign = 1 if node.op_type == "Add" else -1
        added = sign * int(constant.reshape(-1)[0])
        return {name: before + added for name, before in self._holds.get(value, {}).items()}


def _values_of(node: Any) -> list[str]:
    """Those of its inputs that are values; the others are shapes, axes, indices or conditions."""
    if node.op_type in ("Concat", "Max", "Min"):
        return list(node.input)
    return list(node.input[1:] if node.op_type == "Where" else node.input[:1])


def _to_bool(node: Any) -> bool:
    return node.op_type == "Cast" and any(each.name == "to" and each.i == _BOOL for each in node.attribute)


def _model_of(node: Any, opsets: list[Any]) -> Any:
    from onnx import helper

    ends = [
        [helper.make_empty_tensor_value_info(name) for name in names if name] for names in (node.input, node.output)
    ]
    return helper.make_model(helper.make_graph([node], "constant", *ends), opset_imports=opsets)
