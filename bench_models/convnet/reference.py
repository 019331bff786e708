"""The net in NumPy, in the precision of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.convnet.spec import STRIDES
from fairlap.models.arrays import Arrays

Array = npt.NDArray[Any]


def forward(weights: Arrays, inputs: Arrays) -> dict[str, Array]:
    hidden = inputs["image"]
    for number, stride in enumerate(STRIDES):
        convolved = convolution(hidden, weights[f"conv{number}.weight"], stride)
        hidden = np.maximum(convolved + weights[f"conv{number}.bias"][:, None, None], 0.0)
    return {"logits": hidden.mean(axis=(2, 3)) @ weights["head.weight"].T + weights["head.bias"]}


def convolution(image: Array, kernel: Array, stride: int) -> Array:
    """A 3x3 convolution with one pixel of padding on every side."""
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    convolved: Array = np.einsum("bchwij,ocij->bohw", windows, kernel, optimize=True)
    return convolved
