"""Arrays in place of the maps that exporters of classifiers put at the end of a graph.

skl2onnx and others end with ZipMap, which makes a list of one dictionary per item of the array of probabilities. Arrays
are what is compared and timed, so the graph ends before it, as with their option ``zipmap=False``.
"""

from __future__ import annotations

from typing import Any

_DOMAIN = "ai.onnx.ml"
_OPSET = 8  # of a model without operators of ONNX: Identity has been the same from the first one on


def with_arrays_for_maps(model: Any) -> Any:
    """Change the model, and return it; outputs keep their names."""
    from onnx import TensorProto, helper

    maps = {
        node.output[0]: node
        for node in model.graph.node
        if node.op_type == "ZipMap" and node.domain == _DOMAIN and len(node.input) == len(node.output) == 1
    }
    for value in model.graph.output:
        node = maps.get(value.name)
        if node is not None and not value.type.HasField("tensor_type"):
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
            value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, None))
            if not any(each.domain in ("", "ai.onnx") for each in model.opset_import):
                model.opset_import.add(domain="", version=_OPSET)
    return model
