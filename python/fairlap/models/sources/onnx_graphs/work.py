"""How many multiplications one call of an ONNX graph takes at least: those of its convolutions and matrix products."""

from __future__ import annotations

import math
from typing import Any

_PRODUCTS = {"MatMul", "Gemm", "Conv", "MatMulInteger", "ConvInteger"}


Shapes = dict[str, tuple[int, ...]]


def multiplications(model: Any) -> int | None:
    """Of a bound graph; None where a shape cannot be inferred. What is in subgraphs is not counted."""
    inferred, shapes = _inferred(model)
    if inferred is None:
        return None
    total = 0
    varies = {value.name for value in inferred.input}
    for node in inferred.node:
        if not varies.intersection(node.input):  # it may be computed once, ahead of all calls
            continue
        varies.update(node.output)
        if node.op_type not in _PRODUCTS:
            continue
        left, right, out = (shapes.get(name) for name in (*node.input[:2], node.output[0]))
        if left is None or right is None or out is None:
            return None
        total += math.prod(out) * _terms(node, left, right)
    return total


def most_elements(model: Any) -> int:
    """Of any value of a bound graph whose shape can be inferred."""
    _, shapes = _inferred(model)
    return max((math.prod(shape) for shape in shapes.values()), default=0)


def _inferred(model: Any) -> tuple[Any, Shapes]:
    """The graph with the types of its values, and the shapes that are known."""
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (ValueError, onnx.shape_inference.InferenceError):  # too large, or wrong
        return None, {}
    shapes = {tensor.name: tuple(tensor.dims) for tensor in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        axes = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(axis.HasField("dim_value") for axis in axes):
            shapes[value.name] = tuple(axis.dim_value for axis in axes)
    return inferred, shapes


def _terms(node: Any, left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Products that one element of the result sums up."""
    if node.op_type.startswith("Conv"):
        return math.prod(right[1:])
    turned = any(each.name == "transA" and each.i for each in node.attribute)
    return left[0] if turned or len(left) == 1 else left[-1]
