"""The range of every integer input of an ONNX graph, by following it to the tables that it indexes.

Out of range, frameworks differ: some raise, one returns NaN, one clamps, one changes other rows silently.
"""

from __future__ import annotations

from typing import Any

_KEEPS_VALUES = {
    "Cast", "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
}  # fmt: skip


def index_ranges(model: Any) -> dict[str, int]:
    """For each input that indexes a table of known length, the number of its rows: the smallest of several."""
    graph = model.graph
    lengths = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    lengths |= {
        node.output[0]: tuple(attribute.t.dims)
        for node in graph.node
        for attribute in node.attribute
        if node.op_type == "Constant" and attribute.name == "value"
    }
    holds: dict[str, set[str]] = {value.name: {value.name} for value in graph.input if value.name not in lengths}
    found: dict[str, int] = {}
    for node in graph.node:  # sorted, as the format requires
        if node.op_type == "Gather" and len(node.input) > 1 and node.input[0] in lengths:
            axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
            sizes = lengths[node.input[0]]
            if -len(sizes) <= axis < len(sizes):
                for name in holds.get(node.input[1], ()):
                    found[name] = min(found.get(name, sizes[axis]), sizes[axis])
        if node.op_type == "Identity" and node.input[0] in lengths:
            lengths[node.output[0]] = lengths[node.input[0]]
        if node.op_type in _KEEPS_VALUES:
            origins = set().union(*(holds.get(name, set()) for name in node.input[: _data_inputs(node)]))
            for name in node.output:
                holds[name] = origins
    return found


def _data_inputs(node: Any) -> int:
    """How many of its first inputs are values; the others are shapes, axes or indices."""
    return len(node.input) if node.op_type == "Concat" else 1
