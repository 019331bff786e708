"""The perceptron as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.mlp.spec import EPSILON, SPEC
from fairlap.bench_models.onnx_graph import model_of
from fairlap.models.arrays import Arrays
from onnx import helper


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
    return model_of(SPEC, nodes, weights, batch)
