"""Layer normalisation and its relative without a mean."""

from __future__ import annotations

from fairlap.models.onnx_import.graph import Node
from fairlap.models.onnx_import.patterns.view import GraphView


def fuse_layer_norm(view: GraphView, node: Node) -> Node | None:
    """(x - mean) / sqrt(variance + epsilon) * scale, where Mul ends it; with its shift, where Add does."""
    if node.operator == "Add":
        for name, shift in (node.inputs, node.inputs[::-1]):
            normal = view.producer(name, "LayerNormalization")
            if normal is None or len(normal.inputs) != 2 or not view.used_once(name):
                continue
            if view.shape(shift) == view.shape(normal.inputs[1]):
                return Node("LayerNormalization", (*normal.inputs, shift), (), normal.attributes)
        return None
    for name, scale in (node.inputs, node.inputs[::-1]):
        found = _standardised(view, name)
        if found is not None:
            value, axis, epsilon = found
            if view.shape(scale) == view.shape(value)[axis:]:
                return Node("LayerNormalization", (value, scale), (), {"axis": axis, "epsilon": epsilon})
    return None


def _standardised(view: GraphView, name: str) -> tuple[str, int, float] | None:
    quotient = view.producer(name, "Div")
    if quotient is None:
        return None
    centred_name, deviation = quotient.inputs
    centred, root = view.producer(centred_name, "Sub"), view.producer(deviation, "Sqrt")
    if centred is None or root is None:
        return None
    value, mean_name = centred.inputs
    mean = view.producer(mean_name, "ReduceMean")
    if mean is None or mean.inputs[0] != value:
        return None
    variance = _mean_square(view, root.inputs[0])
    if variance is None or view.reduces_last_axes(mean) != variance[1]:
        return None
    squared = view.producer(variance[0], "Sub")
    if squared is None or squared.inputs[0] != value or squared.inputs[1] not in _means(view, mean, value):
        return None
    return value, variance[1], variance[2]


def _means(view: GraphView, mean: Node, value: str) -> set[str]:
    """Find all copies of the mean, which some exporters compute twice."""
    same = {mean.outputs[0]}
    for node in view.nodes:
        if (
            node.operator == "ReduceMean"
            and node.inputs[0] == value
            and view.reduces_last_axes(node) == view.reduces_last_axes(mean)
        ):
            same.add(node.outputs[0])
    return same


def fuse_rms_norm(view: GraphView, node: Node) -> Node | None:
    """x / sqrt(mean(x * x) + epsilon) * scale."""
    for name, scale in (node.inputs, node.inputs[::-1]):
        found = _scaled_by_root(view, name)
        if found is not None:
            value, axis, epsilon = found
            if view.shape(scale) == view.shape(value)[axis:]:
                return Node("RMSNormalization", (value, scale), (), {"axis": axis, "epsilon": epsilon})
    return None


def _scaled_by_root(view: GraphView, name: str) -> tuple[str, int, float] | None:
    product = view.producer(name, "Mul", "Div")
    if product is None:
        return None
    pairs = [product.inputs] if product.operator == "Div" else [product.inputs, product.inputs[::-1]]
    for value, factor in pairs:
        root_name = factor if product.operator == "Div" else _inverse(view, factor)
        root = view.producer(root_name, "Sqrt") if root_name else None
        found = _mean_square(view, root.inputs[0]) if root is not None else None
        if found is not None and found[0] == value:
            return found
    return None


def _inverse(view: GraphView, name: str) -> str | None:
    node = view.producer(name, "Reciprocal", "Div")
    if node is None:
        return None
    if node.operator == "Reciprocal":
        return node.inputs[0]
    return node.inputs[1] if view.number(node.inputs[0]) == 1 else None


def _mean_square(view: GraphView, name: str) -> tuple[str, int, float] | None:
    """Of mean(x * x) + epsilon: x, the first axis and epsilon."""
    total = view.producer(name, "Add")
    parts = view.other_and_number(total) if total is not None else None
    mean = view.producer(parts[0], "ReduceMean") if parts is not None else None
    square = view.producer(mean.inputs[0], "Pow", "Mul") if mean is not None else None
    if parts is None or mean is None or square is None:
        return None
    value, second = square.inputs
    if (second != value) if square.operator == "Mul" else (view.number(second) != 2):
        return None
    axis = view.reduces_last_axes(mean)
    return None if axis is None else (value, axis, parts[1])
