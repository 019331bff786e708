"""The convolution as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.conv2d.spec import KERNEL, PADDING, SPEC
from fairlap.bench_models.onnx_operation import model_of
from fairlap.models.arrays import Arrays
from onnx import helper


def build(weights: Arrays, batch: int) -> Any:
    shape = {"kernel_shape": [KERNEL, KERNEL], "pads": [PADDING] * 4}
    return model_of(SPEC, [helper.make_node("Conv", ["image", "kernel"], ["convolved"], **shape)], weights, batch)
