"""The triad as an ONNX graph of two operations; no operation of ONNX does both."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.onnx_operation import model_of
from fairlap.bench_models.triad.spec import SCALE, SPEC
from fairlap.models.arrays import Arrays
from onnx import helper, numpy_helper


def build(weights: Arrays, batch: int) -> Any:
    nodes = [
        helper.make_node("Constant", [], ["scale"], value=numpy_helper.from_array(np.float32(SCALE))),
        helper.make_node("Mul", ["right", "scale"], ["scaled"]),
        helper.make_node("Add", ["left", "scaled"], ["sum"]),
    ]
    return model_of(SPEC, nodes, weights, batch)
