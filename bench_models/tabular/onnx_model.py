"""The perceptron as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays
from onnx import TensorProto, helper, numpy_helper


def build(weights: Arrays, batch: int) -> Any:
    def linear(name: str, source: str, result: str) -> Any:
        return helper.make_node("Gemm", [source, f"{name}.weight", f"{name}.bias"], [result], transB=1)

    features, outputs = weights["first.weight"].shape[1], weights["third.weight"].shape[0]
    nodes = [
        linear("first", "features", "first"),
        helper.make_node("Relu", ["first"], ["activated"]),
        linear("second", "activated", "second"),
        helper.make_node("Relu", ["second"], ["activated again"]),
        linear("third", "activated again", "answers"),
    ]
    graph = helper.make_graph(
        nodes,
        "tabular",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [batch, features])],
        [helper.make_tensor_value_info("answers", TensorProto.FLOAT, [batch, outputs])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model
