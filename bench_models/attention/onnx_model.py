"""Attention as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.attention.spec import SCALE, SPEC
from fairlap.bench_models.onnx_operation import model_of
from fairlap.models.arrays import Arrays
from onnx import TensorProto, helper


def build(weights: Arrays, batch: int) -> Any:
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [SCALE])
    nodes = [
        helper.make_node("Constant", [], ["scale"], value=scale),
        helper.make_node("Mul", ["query", "scale"], ["scaled"]),
        helper.make_node("Transpose", ["key"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["scaled", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "value"], ["attended"]),
    ]
    return model_of(SPEC, nodes, weights, batch)
