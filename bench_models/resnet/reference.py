"""A ResNet in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.convolution.numpy_unit import apply_unit
from fairlap.bench_models.resnet.spec import STEM, Block, ResNet
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._blocks = network.blocks

    def forward(self, weights: Arrays, inputs: Arrays, statistics: dict[str, Array] | None = None) -> dict[str, Array]:
        hidden = _largest_of_nine(_rectified(apply_unit(weights, STEM, inputs["image"], statistics)))
        for block in self._blocks:
            hidden = _apply_block(weights, block, hidden, statistics)
        features = hidden.mean(axis=(2, 3))
        return {"logits": features @ weights["fc.weight"].T + weights["fc.bias"]}


def _apply_block(weights: Arrays, block: Block, image: Array, statistics: dict[str, Array] | None) -> Array:
    *before, last = block.path
    hidden = image
    for unit in before:
        hidden = _rectified(apply_unit(weights, unit, hidden, statistics))
    hidden = apply_unit(weights, last, hidden, statistics)
    return _rectified(hidden + (apply_unit(weights, block.shortcut, image, statistics) if block.shortcut else image))


def _largest_of_nine(image: Array) -> Array:
    """Take the largest of every 3x3 pixels, two pixels apart, with one pixel of padding that is never the largest."""
    margin = ((0, 0), (0, 0), (1, 1), (1, 1))
    padded = np.pad(image, margin, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    largest: Array = windows[:, :, ::2, ::2].max(axis=(4, 5))
    return largest


def _rectified(image: Array) -> Array:
    return np.maximum(image, 0.0)
