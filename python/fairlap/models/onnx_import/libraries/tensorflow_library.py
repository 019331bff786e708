"""TensorFlow. Images have their channels last: its CPU kernels know no other layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.base import Library, Windows
from fairlap.models.onnx_import.libraries.control import TensorFlowControl
from fairlap.models.tensorflow_edges import with_edges

_REDUCTIONS = {
    "sum": "reduce_sum",
    "mean": "reduce_mean",
    "max": "reduce_max",
    "min": "reduce_min",
    "prod": "reduce_prod",
}
_SCATTERS = {"none": "update", "add": "add", "max": "max", "min": "min"}


class TensorFlowLibrary(TensorFlowControl, Library):
    name = "tensorflow"
    channels_last = True

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf = tf
        super().__init__(tf, tf.math, tf.nn)

    def constant(self, array: Array) -> Any:
        return self.tf.constant(array)

    def enter(self, value: Any) -> Any:
        """Read a variable once: one that rows were gathered from copies itself whenever it is read again."""
        return self.tf.convert_to_tensor(value)

    def cast(self, value: Any, dtype: str) -> Any:
        if dtype == "bool":
            return self.tf.not_equal(value, self.tf.zeros((), value.dtype)) if value.dtype != self.tf.bool else value
        return self.tf.cast(value, dtype)

    def without_gradient(self, value: Any) -> Any:
        return self.tf.stop_gradient(value)

    def dtype_of(self, value: Any) -> str:
        return str(value.dtype.name)

    def is_floating(self, value: Any) -> bool:
        return bool(value.dtype.is_floating)

    # The table of functions finds these before those of TensorFlow.
    def shift_left(self, value: Any, by: Any) -> Any:
        within, by = self._shifts(value, by)
        return self.tf.where(within, self.tf.bitwise.left_shift(value, by), self.tf.zeros_like(value))

    def shift_right(self, value: Any, by: Any) -> Any:
        within, by = self._shifts(value, by)
        sign = self.tf.where(value < 0, self.tf.bitwise.invert(self.tf.zeros_like(value)), self.tf.zeros_like(value))
        return self.tf.where(within, self.tf.bitwise.right_shift(value, by), sign)

    def _shifts(self, value: Any, by: Any) -> tuple[Any, Any]:
        """TensorFlow leaves open what it does where a number is shifted by more bits than it has."""
        within = self.tf.logical_and(by >= 0, by < value.dtype.size * 8)
        return within, self.tf.where(within, by, self.tf.zeros_like(by))

    def truncated_modulo(self, left: Any, right: Any) -> Any:
        if left.dtype.size < 4 and left.dtype.is_floating:
            wide = self.tf.truncatemod(self.tf.cast(left, self.tf.float32), self.tf.cast(right, self.tf.float32))
            return self.tf.cast(wide, left.dtype)
        return self.tf.truncatemod(left, right)

    def concat(self, values: Sequence[Any], axis: int) -> Any:
        return self.tf.concat(values, axis)

    def split(self, value: Any, sizes: Sequence[int], axis: int) -> Any:
        return self.tf.split(value, sizes, axis)

    def scan(self, step: Any, state: tuple[Any, ...], rows: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.tf.scan(step, rows, state)
        return found

    def flip(self, value: Any, axes: Sequence[int]) -> Any:
        return self.tf.reverse(value, axes)

    def pad(self, value: Any, pads: Sequence[tuple[int, int]], number: float) -> Any:
        if not any(edge for pair in pads for edge in pair):
            return value
        return self.tf.pad(value, pads, constant_values=self.tf.constant(number, value.dtype))

    def full_like(self, value: Any, number: float) -> Any:
        return self.tf.fill(value.shape, self.tf.constant(number, value.dtype))

    def number_like(self, number: float, value: Any) -> Any:
        return self.tf.constant(number, value.dtype)

    def power_of_number(self, value: Any, exponent: float) -> Any:
        if exponent == 2:
            return self.tf.square(value)
        if self.is_floating(value) or float(exponent).is_integer():
            return self.tf.pow(value, self.tf.constant(exponent, value.dtype))
        return self.tf.cast(self.tf.pow(self.tf.cast(value, self.tf.float64), exponent), value.dtype)

    def clip_to_numbers(self, value: Any, low: float | None, high: float | None) -> Any:
        return self.tf.nn.relu6(value) if (low, high) == (0, 6) else super().clip_to_numbers(value, low, high)

    def arange(self, size: int) -> Any:
        return self.tf.range(size, dtype=self.tf.int64)

    def reduce(self, kind: str, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        if value.dtype == self.tf.bool:
            return (self.tf.reduce_any if kind == "max" else self.tf.reduce_all)(value, axes, keepdims)
        return getattr(self.tf, _REDUCTIONS[kind])(value, axes, keepdims)

    def log_sum_exp(self, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return self.tf.reduce_logsumexp(value, axes, keepdims)

    def accumulate(self, kind: str, value: Any, axis: int) -> Any:
        return (self.tf.cumsum if kind == "sum" else self.tf.math.cumprod)(value, axis)

    def top_k(self, value: Any, k: int, axis: int, largest: bool) -> Any:
        last = len(value.shape) - 1
        turned = [at for at in range(last + 1) if at != axis] + [axis]
        back = [turned.index(at) for at in range(last + 1)]
        rows = self.tf.transpose(value, turned)
        key = rows if largest else (-rows if self.is_floating(value) else self.tf.bitwise.invert(rows))
        _, places = self.tf.math.top_k(key, k)
        found = self.tf.gather(rows, places, batch_dims=last)
        return self.tf.transpose(found, back), self.tf.cast(self.tf.transpose(places, back), self.tf.int64)

    def gather(self, value: Any, places: Any, axis: int) -> Any:
        """Negative places count from the end."""
        if not isinstance(places, self.tf.Tensor) or places.dtype not in (self.tf.int32, self.tf.int64):
            places = self.tf.cast(places, self.tf.int64)
        places = self.tf.where(places < 0, places + value.shape[axis], places)
        return self.tf.gather(value, places, axis=axis)

    def take(self, value: Any, places: Sequence[int], axis: int) -> Any:
        return self.tf.gather(value, np.asarray(places, np.int32), axis=axis)

    def take_rows(self, value: Any, places: Any) -> Any:
        return self.tf.gather(value, places)

    def scatter(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        if reduction == "mul":
            return value * self.tf.math.unsorted_segment_prod(updates, places, value.shape[0])
        function = getattr(self.tf, f"tensor_scatter_nd_{_SCATTERS[reduction]}")
        return function(value, places[:, self.tf.newaxis], updates)

    def matmul(self, left: Any, right: Any) -> Any:
        """Multiply; a vector counts as a matrix of one row on the left, of one column on the right."""
        row, column = len(left.shape) == 1, len(right.shape) == 1
        if not row and not column:
            return self.tf.linalg.matmul(left, right)
        product = self.tf.linalg.matmul(
            left[self.tf.newaxis] if row else left, right[..., self.tf.newaxis] if column else right
        )
        return self.tf.squeeze(product, [*([-2] if row else []), *([-1] if column else [])])

    def linear(self, value: Any, weight: Any, bias: Any, turned: bool) -> Any:
        product = self.tf.linalg.matmul(value, weight, transpose_b=turned)
        if bias is None:
            return product
        return self.tf.nn.bias_add(product, bias) if len(bias.shape) == 1 else product + bias

    def softmax(self, value: Any, axis: int) -> Any:
        return self.tf.nn.softmax(value, axis)

    def log_softmax(self, value: Any, axis: int) -> Any:
        return self.tf.nn.log_softmax(value, axis)

    def gelu(self, value: Any, tanh: bool) -> Any:
        return self.tf.nn.gelu(value, approximate=tanh)

    def silu(self, value: Any) -> Any:
        return self.tf.nn.silu(value)

    def layer_norm(self, value: Any, scale: Any, shift: Any, axis: int, epsilon: float) -> Any:
        mean, variance = self.tf.nn.moments(value, axes=list(range(axis, len(value.shape))), keepdims=True)
        return self.tf.nn.batch_normalization(value, mean, variance, shift, scale, epsilon)

    def batch_norm(self, image: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float) -> Any:
        if len(image.shape) != 4 or image.dtype != self.tf.float32:
            return self.tf.nn.batch_normalization(image, mean, variance, shift, scale, epsilon)
        normalised, _, _ = self.tf.compat.v1.nn.fused_batch_norm(
            image, scale, shift, mean, variance, epsilon=epsilon, is_training=False
        )
        return normalised

    def batch_norm_of_batch(
        self, image: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float, momentum: float
    ) -> tuple[Any, ...]:
        of_batch, spread = self.tf.nn.moments(image, axes=list(range(len(image.shape) - 1)))
        normalised = self.tf.nn.batch_normalization(image, of_batch, spread, shift, scale, epsilon)
        moved = (old * momentum + new * (1 - momentum) for old, new in ((mean, of_batch), (variance, spread)))
        return normalised, *moved

    def attention(self, query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool) -> Any:
        scores = self.tf.linalg.matmul(query, key, transpose_b=True) * scale
        if causal:
            hidden = np.triu(np.full((query.shape[-2], key.shape[-2]), -np.inf), 1)
            scores += self.tf.constant(hidden, scores.dtype)
        if mask is not None:
            scores += mask
        return self.tf.linalg.matmul(self.tf.nn.softmax(scores, axis=-1), value)

    def convolve(self, image: Any, kernel: Any, bias: Any, windows: Windows) -> Any:
        result = self._convolved(image, kernel, *windows)
        return result if bias is None else self.tf.nn.bias_add(result, bias)

    def _convolved(self, image: Any, kernel: Any, strides: Any, pads: Any, dilations: Any, group: int) -> Any:
        tf, rank = self.tf, len(strides)
        channels = image.shape[-1]
        around = [(0, 0), *((low, high) for low, high in pads), (0, 0)]
        if rank == 2:
            if (
                group == channels
                and channels > 1
                and strides[0] == strides[1]
                and (set(dilations) == {1} or set(strides) == {1})
            ):
                width = kernel.shape[:2]
                depthwise = tf.reshape(kernel, (*width, channels, kernel.shape[-1] // channels))
                # With explicit padding, a bias and an activation, TensorFlow 2.21 ends the process on a CPU.
                if _is_same(image.shape[1:3], width, strides, pads, dilations):
                    padding: Any = "SAME"
                else:
                    image, padding = self.pad(image, around, 0), "VALID"
                return tf.nn.depthwise_conv2d(image, depthwise, [1, *strides, 1], padding, dilations=list(dilations))
            if group == 1 or set(dilations) == {1}:
                image, padding = with_edges(image, around)
                return tf.nn.conv2d(image, kernel, [1, *strides, 1], padding, dilations=list(dilations))
        padded = self.pad(image, around, 0)
        if group == 1:
            return self._valid(padded, kernel, strides, dilations)
        parts = zip(tf.split(padded, group, -1), tf.split(kernel, group, -1), strict=True)
        return tf.concat([self._valid(part, own, strides, dilations) for part, own in parts], -1)

    def _valid(self, image: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
        return self.tf.nn.convolution(image, kernel, list(strides), "VALID", dilations=list(dilations))

    def convolve_transposed(
        self, image: Any, kernel: Any, strides: Sequence[int], dilations: Sequence[int], group: int
    ) -> Any:
        """Convolve with a kernel (spatial, out / group, in), stretched because TensorFlow does not dilate here."""
        tf, rank = self.tf, len(strides)
        kernel = self._stretched(kernel, dilations)
        *width, outward, _ = kernel.shape
        sizes = [
            (size - 1) * stride + one
            for size, stride, one in zip(image.shape[1 : rank + 1], strides, width, strict=True)
        ]
        parts = []
        for part, own in zip(tf.split(image, group, -1), tf.split(kernel, group, -1), strict=True):
            shape = (image.shape[0], *sizes, outward)
            parts.append(tf.nn.conv_transpose(part, own, shape, list(strides), "VALID"))
        return parts[0] if group == 1 else tf.concat(parts, -1)

    def _stretched(self, kernel: Any, dilations: Sequence[int]) -> Any:
        for axis, dilation in enumerate(dilations):
            if dilation > 1:
                size = kernel.shape[axis]
                places = [at // dilation if at % dilation == 0 else size for at in range((size - 1) * dilation + 1)]
                empty = [(0, 1 if at == axis else 0) for at in range(len(kernel.shape))]
                kernel = self.tf.gather(self.tf.pad(kernel, empty), places, axis=axis)
        return kernel

    def max_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Any:
        if not image.dtype.is_floating:
            wide = self.max_pool(self.tf.cast(image, self.tf.float32), kernel, strides, pads, dilations)
            return self.tf.cast(wide, image.dtype)
        padded = self.pad(image, [(0, 0), *pads, (0, 0)], image.dtype.min)
        return self._pooled("MAX", padded, kernel, strides, dilations)

    def sum_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Any:
        count = float(np.prod(kernel))
        return self._pooled("AVG", self.pad(image, [(0, 0), *pads, (0, 0)], 0), kernel, strides, dilations) * count

    def _pooled(self, kind: str, padded: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
        wide = any(stride > width for stride, width in zip(strides, kernel, strict=True))
        if wide or (set(strides) != {1} and set(dilations) != {1}):  # refused: take every window and keep some
            every = self.tf.nn.pool(padded, list(kernel), kind, dilations=list(dilations))
            return every[(slice(None), *(slice(None, None, each) for each in strides))]
        return self.tf.nn.pool(padded, list(kernel), kind, list(strides), "VALID", dilations=list(dilations))


def _is_same(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int],
) -> bool:
    """Whether the pads are those of TensorFlow's "SAME", which has more at the high end where they are odd."""
    for size, width, stride, pad, dilation in zip(sizes, kernel, strides, pads, dilations, strict=True):
        total = max((-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size, 0)
        if tuple(pad) != (total // 2, total - total // 2):
            return False
    return True
