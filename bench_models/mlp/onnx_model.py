"""The perceptron as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mlp.spec import CLASSES, EPSILON, INPUTS
from fairlap.models.arrays import Arrays
from onnx import TensorProto, helper, numpy_helper


def build(weights: Arrays, batch: int) -> Any:
    def linear(name: str, source: str, result: str) -> Any:
        return helper.make_node("Gemm", [source, f"{name}.weight", f"{name}.bias"], [result], transB=1)

    nodes = [
        linear("first", "image", "first"),
        helper.make_node("Gelu", ["first"], ["activated"]),
        helper.make_node("LayerNormalization", ["activated", "norm.weight", "norm.bias"], ["normed"], epsilon=EPSILON),
        linear("second", "normed", "second"),
        helper.make_node("Gelu", ["second"], ["activated again"]),
        linear("third", "activated again", "logits"),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, INPUTS])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model
