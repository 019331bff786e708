"""The sum as an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlap.bench_models.empty.spec import SPEC
from fairlap.bench_models.onnx_operation import model_of
from fairlap.models.arrays import Arrays
from onnx import helper, numpy_helper


def build(weights: Arrays, batch: int) -> Any:
    nodes = [
        helper.make_node("Constant", [], ["one"], value=numpy_helper.from_array(np.float32(1))),
        helper.make_node("Add", ["some", "one"], ["more"]),
    ]
    return model_of(SPEC, nodes, weights, batch)
