"""Where the windows of convolutions and pools stand: paddings and positions, from sizes that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from fairlap.models.onnx_import.graph import Array

Pads = list[tuple[int, int]]


def window_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Pads:
    """Compute the padding before and after, per axis."""
    rank = len(kernel)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
            total = max(0, (math.ceil(size / stride) - 1) * stride + (width - 1) * dilation + 1 - size)
            small, large = total // 2, total - total // 2
            found.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
        return found
    if auto_pad == "VALID" or pads is None:
        return [(0, 0)] * rank
    return [(pads[axis], pads[axis + rank]) for axis in range(rank)]


def extended_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Pads,
    outputs: Sequence[int],
) -> Pads:
    """Extend the padding to the wanted number of windows: the last one may reach over the edge (ceil_mode)."""
    found = []
    for axis, (low, high) in enumerate(pads):
        reach = (outputs[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        found.append((low, max(high, reach - sizes[axis] - low)))
    return found


def elements_per_window(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Pads,
    outputs: Sequence[int],
    with_padding: bool,
) -> Array:
    """How many elements each window's mean is taken over: those of the image, or also those of its padding."""
    axes = []
    for axis, (low, high) in enumerate(pads):
        start = np.arange(outputs[axis])[:, None] * strides[axis] - low
        places = start + np.arange(kernel[axis])[None, :] * dilations[axis]
        first, last = (-low, sizes[axis] + high) if with_padding else (0, sizes[axis])
        axes.append(((places >= first) & (places < last)).sum(axis=1))
    counts = axes[0]
    for each in axes[1:]:
        counts = counts[..., None] * each
    return np.asarray(counts)


def kernel_positions(kernel: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*(range(width) for width in kernel)))
