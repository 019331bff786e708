"""Softmax as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.onnx_operation import model_of
from fairlap.bench_models.softmax.spec import SPEC
from fairlap.models.arrays import Arrays
from onnx import helper


def build(weights: Arrays, batch: int) -> Any:
    return model_of(SPEC, [helper.make_node("Softmax", ["scores"], ["shares"], axis=-1)], weights, batch)
