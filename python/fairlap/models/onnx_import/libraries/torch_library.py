"""PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fairlap.models.fp8_graphs.fp8_numbers import FP8
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.base import Library, Windows
from fairlap.models.onnx_import.libraries.torch_gates import GatesOfLstm

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}
_SCATTERS = {"mul": "prod", "max": "amax", "min": "amin"}


class TorchLibrary(Library):
    name = "torch"

    def __init__(self, device: str | None = None) -> None:
        import torch
        from torch.nn import functional

        self.torch, self.functional, self.device = torch, functional, device
        self.unsigned = (torch.uint16, torch.uint32, torch.uint64)
        self._gates = GatesOfLstm(torch)
        self._convolutions = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
        super().__init__(torch, functional)
        for name, function in self.functions.items():
            if name in _OF_INTEGERS:
                self.functions[name] = partial(_widening, self, function)

    def constant(self, array: Array) -> Any:
        import numpy as np

        if array.dtype.name == FP8:
            array = array.astype(np.float32)
        if array.dtype.name == "bfloat16":
            return self.torch.tensor(array.astype(np.float32), dtype=self.torch.bfloat16, device=self.device)
        return self.torch.tensor(np.array(array), device=self.device)

    def whole(self, number: int) -> Any:
        return self.torch.tensor(number, dtype=self.torch.int64, device=self.device)

    def kernel(self, array: Array) -> Any:
        """PyTorch's layout with channels last, in which its CPU convolutions are faster."""
        tensor = self.constant(array)
        return tensor.contiguous(memory_format=self.torch.channels_last) if array.ndim == 4 else tensor

    def cast(self, value: Any, dtype: str) -> Any:
        return value.to(getattr(self.torch, dtype))

    def dtype_of(self, value: Any) -> str:
        return str(value.dtype).removeprefix("torch.")

    def is_floating(self, value: Any) -> bool:
        return bool(value.dtype.is_floating_point)

    def truncated_division(self, left: Any, right: Any) -> Any:
        return self.torch.div(left, right, rounding_mode="trunc")

    def softplus(self, value: Any) -> Any:
        return self.functional.softplus(value)

    def transpose(self, value: Any, perm: Sequence[int]) -> Any:
        return value.permute(perm)

    def broadcast(self, value: Any, shape: Sequence[int]) -> Any:
        return value.expand(shape)

    def tile(self, value: Any, repeats: Sequence[int]) -> Any:
        return value.repeat(repeats)

    def concat(self, values: Sequence[Any], axis: int) -> Any:
        return self.torch.cat(values, axis)

    def split(self, value: Any, sizes: Sequence[int], axis: int) -> Any:
        return value.split(list(sizes), axis)

    def pad(self, value: Any, pads: Sequence[tuple[int, int]], number: float) -> Any:
        if not any(edge for pair in pads for edge in pair):
            return value
        return self.functional.pad(value, [edge for pair in reversed(pads) for edge in pair], value=number)

    def arange(self, size: int) -> Any:
        return self.torch.arange(size, device=self.device)

    def clip_to_numbers(self, value: Any, low: float | None, high: float | None) -> Any:
        return value if low is None and high is None else self.torch.clamp(value, low, high)

    def reduce(self, kind: str, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        dtype = value.dtype
        if dtype == self.torch.bool:
            return self.reduce(kind, value.to(self.torch.uint8), axes, keepdims).to(dtype)
        if kind in ("max", "min") and not all(value.shape[axis] for axis in axes):
            shape = [1 if at in axes else size for at, size in enumerate(value.shape) if keepdims or at not in axes]
            limits = self.torch.finfo(dtype) if dtype.is_floating_point else self.torch.iinfo(dtype)
            number = limits.min if kind == "max" else limits.max
            if dtype.is_floating_point:
                number = float("-inf") if kind == "max" else float("inf")
            return self.torch.full(shape, number, dtype=dtype, device=value.device)
        if kind == "prod":
            for axis in sorted(axes, reverse=True):
                value = value.prod(axis, keepdim=keepdims)
            return value.to(dtype)
        if kind == "mean" and not dtype.is_floating_point:
            return self.torch.mean(value, axes, keepdim=keepdims, dtype=self.torch.float64).to(dtype)
        return getattr(self.torch, _REDUCTIONS[kind])(value, axes, keepdim=keepdims).to(dtype)

    def log_sum_exp(self, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return self.torch.logsumexp(value, axes, keepdims)

    def top_k(self, value: Any, k: int, axis: int, largest: bool) -> Any:
        ordered, places = self.torch.sort(value, dim=axis, descending=largest, stable=True)
        return ordered.narrow(axis, 0, k), places.narrow(axis, 0, k)

    def without_gradient(self, value: Any) -> Any:
        return value.detach()

    def gather(self, value: Any, places: Any, axis: int) -> Any:
        if len(places.shape) == 0:  # an index that depends on data, which the compiler would want to know
            places = self.torch.where(places < 0, places + value.shape[axis], places)
            return value.index_select(axis, places.long().reshape(1)).squeeze(axis)
        return value[(slice(None),) * axis + (places.long(),)]

    def take(self, value: Any, places: Sequence[int], axis: int) -> Any:
        return value.index_select(axis, self.torch.tensor(places, device=value.device))

    def take_rows(self, value: Any, places: Any) -> Any:
        places = places.long()
        return value.index_select(0, places) if len(places.shape) == 1 else value[places]

    def scatter(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        if reduction == "none":
            return value.scatter(0, places, updates)
        if reduction == "add":
            return value.scatter_add(0, places, updates)
        return value.scatter_reduce(0, places, updates, _SCATTERS[reduction])

    def scatter_rows(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        if reduction == "add":
            return value.index_add(0, places, updates)
        return self.scatter(value, places[:, None].expand(updates.shape), updates, reduction)

    def matmul(self, left: Any, right: Any) -> Any:
        return _widening(self, self.torch.matmul, left, right)

    def linear(self, value: Any, weight: Any, bias: Any, turned: bool) -> Any:
        return self.functional.linear(value, weight if turned else weight.t(), bias)

    def softmax(self, value: Any, axis: int) -> Any:
        return self.torch.softmax(value, axis)

    def log_softmax(self, value: Any, axis: int) -> Any:
        return self.torch.log_softmax(value, axis)

    def gelu(self, value: Any, tanh: bool) -> Any:
        return self.functional.gelu(value, approximate="tanh" if tanh else "none")

    def silu(self, value: Any) -> Any:
        return self.functional.silu(value)

    def layer_norm(self, value: Any, scale: Any, shift: Any, axis: int, epsilon: float) -> Any:
        sizes = tuple(value.shape[axis:])
        if tuple(scale.shape) != sizes or (shift is not None and tuple(shift.shape) != sizes):
            return super().layer_norm(value, scale, shift, axis, epsilon)
        return self.functional.layer_norm(value, sizes, scale, shift, epsilon)

    def rms_norm(self, value: Any, scale: Any, axis: int, epsilon: float) -> Any:
        sizes = tuple(value.shape[axis:])
        if tuple(scale.shape) != sizes:
            return super().rms_norm(value, scale, axis, epsilon)
        return self.functional.rms_norm(value, sizes, scale, epsilon)

    def batch_norm(self, image: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float) -> Any:
        return self.functional.batch_norm(image, mean, variance, scale, shift, training=False, eps=epsilon)

    def lstm(self, x: Any, by_input: Any, by_state: Any, bias: Any, start: Any, start_cell: Any) -> Any:
        directions, size = by_state.shape[0], by_state.shape[2]
        parts = self._gates.of(by_input, by_state, bias)
        zeros = x.new_zeros((directions, x.shape[1], size))
        starts = (zeros if start is None else start, zeros if start_cell is None else start_cell)
        states, last, last_cell = self.torch.lstm(
            x, starts, parts, bias is not None, 1, 0.0, False, directions == 2, False
        )
        by_direction = states.reshape(*x.shape[:2], directions, size).permute(0, 2, 1, 3)
        return by_direction, last, last_cell

    def group_norm(self, image: Any, scale: Any, shift: Any, groups: int, epsilon: float) -> Any:
        return self.functional.group_norm(image, groups, scale, shift, epsilon)

    def batch_norm_of_batch(
        self, image: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float, momentum: float
    ) -> tuple[Any, ...]:
        """PyTorch moves the average by the variance of a sample, so the way is made that of a population's."""
        count = image.numel() / image.shape[1]
        averages = mean.detach().clone(), variance.detach().clone()
        normalised = self.functional.batch_norm(
            image, *averages, scale, shift, training=True, momentum=1 - momentum, eps=epsilon
        )
        kept = momentum * variance.detach()
        return normalised, averages[0], kept + (averages[1] - kept) * ((count - 1) / count)

    def attention(self, query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool) -> Any:
        """With all heads on one axis, since PyTorch has a fused kernel for four axes only."""
        lead = tuple(query.shape[:-2])
        if mask is not None and len(mask.shape) < 2:
            mask = mask.expand(query.shape[-2], key.shape[-2])
        query, key, value = (_heads_on_one_axis(each, lead) for each in (query, key, value))
        if mask is not None and len(mask.shape) > 2:
            mask = mask.reshape((1,) * (len(lead) + 2 - len(mask.shape)) + tuple(mask.shape))
            by_head = any(size != 1 for size in mask.shape[1:-2])
            mask = _heads_on_one_axis(mask, (*mask.shape[:1], *(lead[1:] if by_head else mask.shape[1:-2])))
        answer = self.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, scale=scale
        )
        return answer.reshape(*lead, *answer.shape[-2:])

    def convolution(self, windows: Windows) -> Callable[..., Any]:
        """Decide once what a loop by hand would not decide in each call either."""
        strides, pads, dilations, group = windows
        own, after = zip(*pads, strict=True)
        convolve, contiguous, last = self._convolutions[len(own)], len(own) == 2, self.torch.channels_last
        edges: list[int] = [] if own == after else [edge for pair in reversed(pads) for edge in pair]
        own, pad = (0,) * len(own) if edges else own, self.functional.pad

        def convolved(image: Any, kernel: Any, bias: Any = None) -> Any:
            if contiguous:  # does nothing after another convolution
                image = image.contiguous(memory_format=last)
            if edges:
                image = pad(image, edges)
            return convolve(image, kernel, bias, strides, own, dilations, group)

        return convolved

    def convolve(self, image: Any, kernel: Any, bias: Any, windows: Windows) -> Any:
        found: Any = self.convolution(windows)(image, kernel, bias)
        return found

    def convolve_transposed(
        self, image: Any, kernel: Any, strides: Sequence[int], dilations: Sequence[int], group: int
    ) -> Any:
        convolve: Callable[..., Any] = getattr(self.functional, f"conv_transpose{len(strides)}d")
        return convolve(image, kernel, stride=tuple(strides), dilation=tuple(dilations), groups=group)

    def max_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Any:
        if not image.dtype.is_floating_point:
            wide = self.max_pool(image.to(self.torch.float64), kernel, strides, pads, dilations)
            return wide.to(image.dtype)
        own = [low for low, _ in pads]
        if any(low != high or 2 * low > width for (low, high), width in zip(pads, kernel, strict=True)):
            image, own = self.pad(image, [(0, 0), (0, 0), *pads], float("-inf")), [0] * len(own)
        pool = getattr(self.functional, f"max_pool{len(kernel)}d")
        return pool(image, tuple(kernel), tuple(strides), tuple(own), tuple(dilations))

    def average_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], counted: bool
    ) -> Any:
        if any(2 * low > width for low, width in zip(pads, kernel, strict=True)):
            return None
        pool = getattr(self.functional, f"avg_pool{len(kernel)}d")
        return pool(image, tuple(kernel), tuple(strides), tuple(pads), count_include_pad=counted)

    def sum_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Any:
        """Sum by a convolution with ones, channel by channel."""
        channels = image.shape[1]
        ones = self.torch.ones((channels, 1, *kernel), dtype=image.dtype, device=image.device)
        return self.convolve(image, ones, None, Windows(strides, pads, dilations, channels))


_OF_INTEGERS = frozenset(
    (
        "Add",
        "Sub",
        "Mul",
        "IntegerDivision",
        "FlooredModulo",
        "TruncatedModulo",
        "Maximum",
        "Minimum",
        "Power",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Equal",
        "ShiftLeft",
        "ShiftRight",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "BitwiseNot",
        "Abs",
        "Neg",
        "Sign",
    )
)


def _widening(library: TorchLibrary, function: Callable[..., Any], *values: Any) -> Any:
    """PyTorch stores unsigned integers of 16 to 64 bits but hardly computes with them: compute in int64 instead."""
    dtype = values[0].dtype
    if dtype not in library.unsigned:
        return function(*values)
    wide = [each.to(library.torch.int64) if each.dtype in library.unsigned else each for each in values]
    result = function(*wide)
    return result if result.dtype == library.torch.bool else result.to(dtype)


def _heads_on_one_axis(value: Any, lead: tuple[int, ...]) -> Any:
    """Give a value, spread over the leading axes ``lead``, as batch, heads, tokens and features."""
    whole = value.expand(*lead, *value.shape[-2:])
    return whole.unsqueeze(1) if len(lead) == 1 else whole.flatten(1, -3)
