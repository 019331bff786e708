"""The shapes of values in an ONNX graph, where onnx can infer them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Shape = tuple[int, ...]
Shapes = dict[str, Shape]


def inferred_graph(model: Any) -> Any:
    """None where nothing can be inferred."""
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (ValueError, onnx.shape_inference.InferenceError):  # too large, or wrong
        return None


def known_shapes(values: Iterable[Any]) -> Shapes:
    """Of those whose sizes are all known."""
    return {
        value.name: tuple(axis.dim_value for axis in value.type.tensor_type.shape.dim)
        for value in values
        if value.type.tensor_type.HasField("shape")
        and all(axis.HasField("dim_value") for axis in value.type.tensor_type.shape.dim)
    }
