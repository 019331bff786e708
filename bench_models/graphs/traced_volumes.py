"""Convolutions of volumes that are differentiated.

What a kernel of three sides meets is found again on the way back: kept, it would be 27 times the volume in every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from fairlap.models.checks.differentiation import Traced, plain
from fairlap.models.onnx_import.libraries.numpy_library import shifted
from fairlap.models.onnx_import.libraries.windows import Pads, kernel_positions


def convolved(
    result: Any, image: Any, kernel: Any, strides: Sequence[int], pads: Pads, dilations: Sequence[int]
) -> Traced:
    """Trace the ``result`` of a convolution in one group, without a bias, back to its image and its kernel."""
    margins = [(0, 0), (0, 0), *pads]
    inner = tuple(slice(before, before + size) for size, (before, _) in zip(image.shape, margins, strict=True))
    width = kernel.shape[2:]
    whole, weights = plain(image), plain(kernel)
    sizes = result.shape[2:]

    def by_image(gradient: Any) -> Any:
        columns = gradient.reshape(*gradient.shape[:2], -1)
        shape = [size + before + after for size, (before, after) in zip(whole.shape, margins, strict=True)]
        found = np.zeros_like(gradient, shape=shape)
        for place in kernel_positions(width):
            part = np.matmul(weights[(slice(None), slice(None), *place)].T, columns)
            shifted(found, place, sizes, strides, dilations)[...] += part.reshape(*whole.shape[:2], *sizes)
        return found[inner]

    def by_kernel(gradient: Any) -> Any:
        rows, padded = gradient.reshape(*gradient.shape[:2], -1), np.pad(whole, margins)
        found = np.zeros_like(gradient, shape=weights.shape)
        for place in kernel_positions(width):
            met = shifted(padded, place, sizes, strides, dilations).reshape(*whole.shape[:2], -1)
            found[(slice(None), slice(None), *place)] = np.matmul(rows, met.swapaxes(1, 2)).sum(axis=0)
        return found

    rules = [(image, by_image), (kernel, by_kernel)]
    return Traced(result, [(array, rule) for array, rule in rules if isinstance(array, Traced)])
