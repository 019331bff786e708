"""Softmax as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.workloads.workload import Arrays
from onnx import helper

from bench_models.operation_onnx import model_of
from bench_models.softmax.spec import SPEC


def build(weights: Arrays, batch: int) -> Any:
    return model_of(SPEC, [helper.make_node("Softmax", ["scores"], ["shares"], axis=-1)], weights, batch)
