"""The net in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.convolution.numpy_unit import apply_unit
from fairlap.bench_models.mnist.spec import BLOCKS, STEM, Block
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


def forward(weights: Arrays, inputs: Arrays, statistics: dict[str, Array] | None = None) -> dict[str, Array]:
    hidden = _rectified(apply_unit(weights, STEM, inputs["image"], statistics))
    for block in BLOCKS:
        hidden = _apply_block(weights, block, hidden, statistics)
    features = hidden.mean(axis=(2, 3))
    return {"logits": features @ weights["fc.weight"].T + weights["fc.bias"]}


def _apply_block(weights: Arrays, block: Block, image: Array, statistics: dict[str, Array] | None) -> Array:
    hidden = _rectified(apply_unit(weights, block.first, image, statistics))
    hidden = apply_unit(weights, block.second, hidden, statistics)
    return _rectified(hidden + (apply_unit(weights, block.shortcut, image, statistics) if block.shortcut else image))


def _rectified(image: Array) -> Array:
    return np.maximum(image, 0.0)
