"""NumPy: the float64 reference, and the arithmetic of constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.fp8_graphs.fp8_numbers import FP8, rounded_to_fp8
from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.base import ArrayModule, Windows
from fairlap.models.onnx_import.libraries.windows import kernel_positions

_REDUCTIONS: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
_MOST_COLUMNS = 2**19  # numbers at a time, which a processor's cache holds
_SCATTERS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class NumPyLibrary(ArrayModule):
    """``wide`` computes every floating-point number in float64, whatever type the model gives it."""

    name = "numpy"
    widens = True

    def __init__(self, *, wide: bool = True) -> None:
        from scipy import special  # type: ignore[import-untyped,unused-ignore]  # takes 0.3 s, and few models need it

        super().__init__(np, special)
        self.wide = wide

    def constant(self, array: Array) -> Array:
        return array.astype(np.float64, copy=False) if self.wide and is_floating(array.dtype) else array

    def enter(self, value: Any) -> Array:
        return self.constant(np.asarray(value))

    def cast(self, value: Array, dtype: str) -> Array:
        wanted = np.dtype(dtype)
        if self.wide and is_floating(wanted):
            wanted = np.dtype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(value).astype(wanted)

    def to_fp8(self, value: Array) -> Array:
        return rounded_to_fp8(np.asarray(value))

    def is_floating(self, value: Array) -> bool:
        return is_floating(value.dtype)

    def expect(self, condition: Array, wanted: bool) -> None:
        if bool(np.all(condition)) is not wanted:
            raise ModelFileInvalid("these inputs choose the branch of an If that their own sizes do not fit")

    # The table of functions finds these before those of NumPy.
    @staticmethod
    def relu(value: Array) -> Any:
        return np.maximum(value, 0)

    @staticmethod
    def softplus(value: Array) -> Any:
        return np.logaddexp(value, 0)

    @staticmethod
    def softsign(value: Array) -> Any:
        return value / (1 + np.abs(value))

    @staticmethod
    def truncated_division(left: Array, right: Array) -> Any:
        with np.errstate(divide="ignore"):
            quotient, remainder = np.divmod(left, right)
        return quotient + ((remainder != 0) & ((left < 0) != (right < 0))).astype(quotient.dtype)

    def pad(self, value: Array, pads: Sequence[tuple[int, int]], number: float) -> Array:
        return np.pad(value, pads, constant_values=number)

    def reduce(self, kind: str, value: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if kind in ("max", "min") and not all(value.shape[axis] for axis in axes):
            shape = [
                1 if axis in axes else size for axis, size in enumerate(value.shape) if axis not in axes or keepdims
            ]
            return np.full(shape, self._extreme(value, lowest=kind == "max"), value.dtype)
        if kind == "mean":
            return np.asarray(np.mean(value, axis=axes, keepdims=keepdims)).astype(value.dtype)
        return np.asarray(_REDUCTIONS[kind](value, axis=axes, keepdims=keepdims)).astype(value.dtype)

    def top_k(self, value: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
        key = value
        if largest:
            key = -value if self.is_floating(value) else np.invert(value)
        places = np.take(np.argsort(key, axis=axis, kind="stable"), range(k), axis)
        return np.take_along_axis(value, places, axis), places

    def take(self, value: Array, places: Sequence[int], axis: int) -> Array:
        return np.take(value, np.asarray(places, np.int64), axis)

    def scatter(self, value: Array, places: Array, updates: Array, reduction: str) -> Array:
        result = value.copy()
        if reduction == "none":
            result[places] = updates
        else:
            _SCATTERS[reduction].at(result, places, updates)
        return result

    def einsum(self, equation: str, *values: Array) -> Any:
        return np.einsum(equation, *values, optimize=True)

    def determinant(self, value: Array) -> Any:
        return np.asarray(np.linalg.det(value))

    def convolve(self, image: Array, kernel: Array, bias: Array | None, windows: Windows) -> Array:
        """One product of matrices per image and group: kernels as rows, what stands under each position as columns.

        A part of the columns at a time: all of those of a wide kernel are hundreds of times the image.
        """
        strides, pads, dilations, group = windows
        padded = np.pad(image, [(0, 0), (0, 0), *pads])
        batch, channels = padded.shape[:2]
        width = kernel.shape[2:]
        sizes = _window_counts(padded.shape[2:], width, strides, dilations)
        places = kernel_positions(width)
        rows = kernel.reshape(group, kernel.shape[0] // group, -1)
        of_line = batch * channels * len(places) * math.prod(sizes[1:])
        at_once = max(1, _MOST_COLUMNS // max(1, of_line))
        parts = []
        for first in range(0, max(1, sizes[0]), at_once):
            lines = (min(at_once, sizes[0] - first), *sizes[1:])
            below = padded[:, :, first * strides[0] :]
            shifts = [shifted(below, place, lines, strides, dilations) for place in places]
            columns = np.stack(shifts, axis=2) if len(shifts) > 1 else shifts[0]
            columns = columns.reshape(batch, group, channels // group * len(places), math.prod(lines))
            parts.append(np.matmul(rows, columns).reshape(batch, kernel.shape[0], *lines))
        result: Array = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)
        if bias is not None:
            result = result + self.per_channel(bias, len(width))
        return result

    def convolve_transposed(
        self, image: Array, kernel: Array, strides: Sequence[int], dilations: Sequence[int], group: int
    ) -> Array:
        batch, channels, *sizes = image.shape
        width = kernel.shape[2:]
        if tuple(width) == tuple(strides) and set(dilations) == {1}:
            return self._apart(image, kernel, group)
        full = [
            (size - 1) * stride + (one - 1) * dilation + 1
            for size, stride, one, dilation in zip(sizes, strides, width, dilations, strict=True)
        ]
        outward = kernel.shape[1]
        result = np.zeros((batch, group * outward, *full), np.result_type(image, kernel))
        pixels = image.reshape(batch, group, channels // group, -1)
        weights = kernel.reshape(group, channels // group, outward, *width)
        for place in kernel_positions(width):
            at_place: Any = (slice(None), slice(None), slice(None), *place)
            spread = np.einsum("bgcp,gco->bgop", pixels, weights[at_place], optimize=True)
            kept = tuple(
                slice(at * dilation, at * dilation + (size - 1) * stride + 1, stride)
                for at, dilation, size, stride in zip(place, dilations, sizes, strides, strict=True)
            )
            result[(slice(None), slice(None), *kept)] += spread.reshape(batch, group * outward, *sizes)
        return result

    def _apart(self, image: Array, kernel: Array, group: int) -> Array:
        """Spread kernels that do not overlap: what each pixel becomes is one product of matrices."""
        batch, channels, *sizes = image.shape
        outward, *width = kernel.shape[1:]
        rows = kernel.reshape(group, channels // group, -1).swapaxes(1, 2)
        spread = np.matmul(rows, image.reshape(batch, group, channels // group, -1))
        spread = spread.reshape(batch, group * outward, *width, *sizes)
        rank = len(width)
        order = [axis for place in range(rank) for axis in (2 + rank + place, 2 + place)]
        larger = (size * edge for size, edge in zip(sizes, width, strict=True))
        joined: Array = spread.transpose(0, 1, *order).reshape(batch, group * outward, *larger)
        return joined

    def max_pool(
        self, image: Array, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Array:
        lowest = self._extreme(image, lowest=True)
        padded = np.pad(image, [(0, 0), (0, 0), *pads], constant_values=lowest)
        return self._pooled(np.maximum, padded, kernel, strides, dilations)

    def sum_pool(
        self, image: Array, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Array:
        return self._pooled(np.add, np.pad(image, [(0, 0), (0, 0), *pads]), kernel, strides, dilations)

    def _pooled(
        self, join: Any, padded: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
    ) -> Array:
        sizes = _window_counts(padded.shape[2:], kernel, strides, dilations)
        result: Any = None
        for place in kernel_positions(kernel):
            part = shifted(padded, place, sizes, strides, dilations)
            result = part if result is None else join(result, part)
        pooled: Array = result
        return pooled


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Also for bfloat16 and fp8, which NumPy does not know as floating-point types."""
    return dtype.kind == "f" or dtype.name in ("bfloat16", FP8)


def _window_counts(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    return [
        (size - (one - 1) * dilation - 1) // stride + 1
        for size, one, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
    ]


def shifted(
    padded: Array, place: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """Select what one element of the kernel meets."""
    kept = tuple(
        slice(at * dilation, at * dilation + (size - 1) * stride + 1, stride)
        for at, dilation, size, stride in zip(place, dilations, sizes, strides, strict=True)
    )
    return padded[(slice(None), slice(None), *kept)]
