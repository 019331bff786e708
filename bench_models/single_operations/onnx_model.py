"""The operations as ONNX graphs of a node or a few."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from fairlap.bench_models.attention.spec import SCALE
from fairlap.bench_models.conv2d.spec import KERNEL, PADDING
from fairlap.bench_models.layernorm.spec import EPSILON
from fairlap.bench_models.onnx_graph import model_of
from fairlap.bench_models.triad.spec import SCALE as TRIAD_SCALE
from fairlap.models.arrays import Arrays
from onnx import helper, numpy_helper

node = helper.make_node


def _scalar(name: str, value: float) -> Any:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, np.float32)))


_NODES = {
    "attention": [
        _scalar("scale", SCALE),
        node("Mul", ["query", "scale"], ["scaled"]),
        node("Transpose", ["key"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["scaled", "turned"], ["scores"]),
        node("Softmax", ["scores"], ["shares"], axis=-1),
        node("MatMul", ["shares", "value"], ["attended"]),
    ],
    "conv2d": [
        node("Conv", ["image", "kernel"], ["convolved"], kernel_shape=[KERNEL, KERNEL], pads=[PADDING] * 4),
    ],
    "empty": [_scalar("one", 1), node("Add", ["some", "one"], ["more"])],
    "gemm": [node("MatMul", ["left", "right"], ["product"])],
    "layernorm": [
        node("LayerNormalization", ["hidden", "norm.weight", "norm.bias"], ["normed"], epsilon=EPSILON),
    ],
    "softmax": [node("Softmax", ["scores"], ["shares"], axis=-1)],
    "triad": [  # no operation of ONNX does both
        _scalar("scale", TRIAD_SCALE),
        node("Mul", ["right", "scale"], ["scaled"]),
        node("Add", ["left", "scaled"], ["sum"]),
    ],
}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec = spec.SPEC

    def build(self, weights: Arrays, batch: int) -> Any:
        return model_of(self._spec, _NODES[self._spec.name], weights, batch)
