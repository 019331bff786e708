"""The perceptron as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.onnx_graph import model_with
from fairlap.models.arrays import Arrays
from onnx import TensorProto, helper


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
    inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, [batch, features])]
    answers = [helper.make_tensor_value_info("answers", TensorProto.FLOAT, [batch, outputs])]
    return model_with("tabular", nodes, inputs, answers, weights)
