"""NumPy in float64, with every result moved by what float32 may lose in it.

This is stochastic arithmetic (Vignes' CESTAC, Verrou): several draws show how far roundings inside of a model move its
answers, also where a small difference of large numbers is divided by an even smaller one. Plain float32 shows that only
for its own order of summation, and not at all where that happens to be exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.checks.float32_products import (
    lost_in_product,
    lost_in_products,
    plain_share,
    plain_shares_in_convolution,
)
from fairlap.models.checks.float32_sums import ROUNDOFF, are_multiples, lost_by, lost_in_sum, moved
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.base import Windows
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary, is_floating


class LossySums(NumPyLibrary):
    """``seed`` draws which values are moved up; the same for each call."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        self._drawn = np.random.default_rng(seed)

    def begin(self) -> None:
        self._drawn = np.random.default_rng(self.seed)

    def leave(self, value: Any, dtype: str) -> Any:
        array = np.asarray(value)
        if dtype != "float32" or not is_floating(array.dtype):
            return value
        return self._moved(array, ROUNDOFF * np.abs(array))

    def reduce(self, kind: str, value: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        result = super().reduce(kind, value, axes, keepdims)
        if kind not in ("sum", "mean") or not is_floating(value.dtype):
            return result
        lost = lost_in_sum(value, axes).reshape(result.shape)
        if kind == "mean":
            lost /= max(1, math.prod(value.shape[axis] for axis in axes))
        return self._moved(result, lost)

    def accumulate(self, kind: str, value: Array, axis: int) -> Any:
        result = np.asarray(super().accumulate(kind, value, axis))
        if kind != "sum" or not is_floating(value.dtype):
            return result
        narrow = value.astype(np.float32)
        exact = np.cumsum(narrow, axis, dtype=np.float64)
        return self._moved(result, np.abs(np.cumsum(narrow, axis, dtype=np.float32) - exact))

    def matmul(self, left: Any, right: Any) -> Any:
        product = np.asarray(super().matmul(left, right))
        if not is_floating(product.dtype):
            return product
        return self._moved(product, lost_in_product(left, right, product))

    def einsum(self, equation: str, *values: Array) -> Any:
        result = np.asarray(super().einsum(equation, *values))
        terms, arrow, kept = equation.partition("->")
        kept = kept if arrow else "".join(letter for letter in terms if terms.count(letter) == 1)
        sizes = {
            letter: size
            for term, value in zip(terms.split(","), values, strict=True)
            if "." not in term
            for letter, size in zip(term, value.shape, strict=True)
        }
        count = math.prod(size for letter, size in sizes.items() if letter not in kept)
        if count < 2 or not is_floating(result.dtype):
            return result
        norms = math.sqrt(count) * np.sqrt(super().einsum(equation, *(np.square(value) for value in values)))
        lost = lost_in_products(result, norms, *values, count=count)
        if plain := plain_share(self._one_of_einsum(terms.split(","), kept, values)):
            lost = np.maximum(lost, plain * norms)
        return self._moved(result, lost)

    def _one_of_einsum(self, terms: Sequence[str], kept: str, values: Sequence[Array]) -> Array:
        """Give the products that are added up for the element in the middle; none where axes have no letters."""
        if any("." in term for term in terms):
            return np.zeros(0)
        middle = []
        for term, value in zip(terms, values, strict=True):
            places = zip(term, value.shape, strict=True)
            middle.append(value[tuple(size // 2 if letter in kept else slice(None) for letter, size in places)])
        summed = ["".join(letter for letter in term if letter not in kept) for term in terms]
        return np.asarray(super().einsum(f"{','.join(summed)}->{''.join(sorted(set().union(*summed)))}", *middle))

    def convolve(self, image: Array, kernel: Array, bias: Array | None, windows: Windows) -> Array:
        result = super().convolve(image, kernel, None, windows)
        strides, pads, dilations, group = windows
        batch, channels, *sizes = image.shape
        squares = np.square(image).reshape(batch, group, channels // group, *sizes).sum(axis=2)
        patches = np.sqrt(super().sum_pool(squares, kernel.shape[2:], strides, pads, dilations))
        of_kernels = np.linalg.norm(kernel.reshape(kernel.shape[0], -1), axis=1)
        norms = np.repeat(patches, kernel.shape[0] // group, axis=1)
        norms *= of_kernels.reshape(-1, *(1,) * len(sizes))
        lost = lost_in_products(result, norms, image, kernel, count=kernel[0].size)
        if (plain := plain_shares_in_convolution(image, kernel, dilations, group)) is not None:
            lost = np.maximum(lost, plain * norms)
        result = self._moved(result, lost)
        return result if bias is None else result + self.per_channel(bias, len(sizes))

    def convolve_transposed(
        self, image: Array, kernel: Array, strides: Sequence[int], dilations: Sequence[int], group: int
    ) -> Array:
        result = super().convolve_transposed(image, kernel, strides, dilations, group)
        squares = super().convolve_transposed(np.square(image), np.square(kernel), strides, dilations, group)
        overlapping = (-(-width // stride) for width, stride in zip(kernel.shape[2:], strides, strict=True))
        count = kernel.shape[0] // group * math.prod(overlapping)
        lost = lost_in_products(result, np.sqrt(count * squares), image, kernel, count=count)
        return self._moved(result, lost)

    def sum_pool(
        self, image: Array, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Array:
        def pooled(values: Array) -> Array:
            return super(LossySums, self).sum_pool(values, kernel, strides, pads, dilations)

        narrow = image.astype(np.float32)
        wide = narrow.astype(np.float64)
        exact, norm = pooled(wide), np.sqrt(pooled(np.square(wide)))
        exactly = bool(are_multiples(wide, pooled(np.abs(wide)).max(initial=0.0)).all())
        lost = lost_by(np.abs(pooled(narrow) - exact), exact, norm, math.prod(kernel), exactly)
        return self._moved(pooled(image), lost)

    def _moved(self, values: Array, lost: Array) -> Array:
        return moved(values, lost, int(self._drawn.integers(2**32)))
