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
    """Convolve by 3x3 with one pixel of padding on every side, as one matrix product per image.

    The kernels are its rows, the pixels under each position its columns.
    """
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = ((size - 1) // stride + 1 for size in image.shape[2:])
    shifted = [
        padded[:, :, row : row + stride * height : stride, column : column + stride * width : stride]
        for row in range(3)
        for column in range(3)
    ]
    pixels = np.stack(shifted, axis=1).reshape(len(image), -1, height * width)
    convolved: Array = kernel.transpose(0, 2, 3, 1).reshape(len(kernel), -1) @ pixels
    return convolved.reshape(len(image), -1, height, width)
