"""MobileNetV2 in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.convolution.numpy_unit import apply_unit
from fairlap.bench_models.mobilenet_v2.spec import BLOCKS, LAST, STEM, Block
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


def forward(weights: Arrays, inputs: Arrays, statistics: dict[str, Array] | None = None) -> dict[str, Array]:
    hidden = _relu6(apply_unit(weights, STEM, inputs["image"], statistics))
    for block in BLOCKS:
        hidden = _apply_block(weights, block, hidden, statistics)
    features = _relu6(apply_unit(weights, LAST, hidden, statistics)).mean(axis=(2, 3))
    return {"logits": features @ weights["classifier.1.weight"].T + weights["classifier.1.bias"]}


def _apply_block(weights: Arrays, block: Block, image: Array, statistics: dict[str, Array] | None) -> Array:
    hidden = _relu6(apply_unit(weights, block.expand, image, statistics)) if block.expand else image
    hidden = _relu6(apply_unit(weights, block.depthwise, hidden, statistics))
    hidden = apply_unit(weights, block.project, hidden, statistics)
    return hidden + image if block.residual else hidden


def _relu6(image: Array) -> Array:
    return np.clip(image, 0.0, 6.0)
