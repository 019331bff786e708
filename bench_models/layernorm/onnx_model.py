"""Layer normalisation as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.layernorm.spec import EPSILON, SPEC
from fairlap.bench_models.onnx_operation import model_of
from fairlap.models.arrays import Arrays
from onnx import helper


def build(weights: Arrays, batch: int) -> Any:
    names = ["hidden", "norm.weight", "norm.bias"]
    return model_of(SPEC, [helper.make_node("LayerNormalization", names, ["normed"], epsilon=EPSILON)], weights, batch)
