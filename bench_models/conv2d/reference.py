"""The convolution in NumPy: one matrix product over the pixels that each place sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.conv2d.spec import IMAGE, INWARD, KERNEL, OUTWARD, PADDING
from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    margin = (PADDING, PADDING)
    padded = np.pad(inputs["image"], ((0, 0), (0, 0), margin, margin))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
    columns = seen.transpose(0, 1, 4, 5, 2, 3).reshape(len(padded), INWARD * KERNEL**2, IMAGE**2)
    convolved = weights["kernel"].reshape(OUTWARD, -1) @ columns
    return {"convolved": convolved.reshape(-1, OUTWARD, IMAGE, IMAGE)}
