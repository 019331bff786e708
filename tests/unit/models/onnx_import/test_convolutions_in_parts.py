"""A convolution in parts is the same as a loop over every place, group and stride."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fairlap.models.onnx_import.libraries import numpy_library
from fairlap.models.onnx_import.libraries.base import Windows
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary


def by_hand(image: np.ndarray, kernel: np.ndarray, stride: int, dilation: int, group: int) -> np.ndarray:
    outward, inward, height, width = kernel.shape
    spans = [(size - 1) * dilation + 1 for size in (height, width)]
    sizes = [(size - span) // stride + 1 for size, span in zip(image.shape[2:], spans, strict=True)]
    found = np.zeros((len(image), outward, *sizes))
    for item, channel, row, column in product(*map(range, found.shape)):
        first = channel // (outward // group) * inward
        top, left = row * stride, column * stride
        seen = image[item, first : first + inward, top : top + spans[0] : dilation, left : left + spans[1] : dilation]
        found[item, channel, row, column] = np.sum(seen * kernel[channel])
    return found


@pytest.mark.parametrize(("stride", "dilation", "group"), [(1, 1, 1), (2, 1, 2), (1, 2, 1), (3, 2, 4)])
@pytest.mark.parametrize("most", [1, 500, 2**19])
def test_parts_of_any_size_give_the_whole(
    monkeypatch: pytest.MonkeyPatch, most: int, stride: int, dilation: int, group: int
) -> None:
    monkeypatch.setattr(numpy_library, "_MOST_COLUMNS", most)
    rng = np.random.default_rng(0)
    image, kernel = rng.standard_normal((2, 4, 13, 11)), rng.standard_normal((8, 4 // group, 3, 2))
    pads, steps, apart = [(0, 0), (0, 0)], (stride, stride), (dilation, dilation)
    found = NumPyLibrary().convolve(image, kernel, None, Windows(steps, pads, apart, group))
    np.testing.assert_allclose(found, by_hand(image, kernel, stride, dilation, group), rtol=1e-12, atol=1e-12)
