"""The layers are those of ``convnet``."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convnet import onnx_model
from fairlap.bench_models.digits.spec import IMAGE
from fairlap.models.arrays import Arrays


def build(weights: Arrays, batch: int) -> Any:
    return onnx_model.build(weights, batch, IMAGE)
