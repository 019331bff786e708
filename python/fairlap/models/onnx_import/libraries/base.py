"""What operators may ask of a library. A library's native function is used where there is one; the rest is here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairlap.models.fp8_graphs.fp8_numbers import FP8, LARGEST
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.control import PythonControl
from fairlap.models.onnx_import.libraries.functions import FUNCTIONS


class Windows(NamedTuple):
    """Where the kernels of a convolution are laid on an image."""

    strides: Sequence[int]
    pads: Sequence[tuple[int, int]]
    dilations: Sequence[int]
    group: int


class Library(PythonControl):
    """Array functions under common names. Arguments and results are the library's own arrays.

    Axes are never negative. Shapes are tuples of integers, known when tracing.
    """

    name = ""
    channels_last = False
    floats = "float32"  # what the file's float32 is held in
    widens = False  # weights grow when they enter, so each is to enter where it is used
    leave: Callable[[Any, str], Any] | None = None  # called with each result of arithmetic and the file's type of it

    def __init__(self, module: Any, *others: Any) -> None:
        self.module = module
        self.functions: dict[str, Callable[..., Any]] = {
            name: self._found(getattr(function, self.name), (module, *others)) for name, function in FUNCTIONS.items()
        }

    def _found(self, path: str, modules: Sequence[Any]) -> Callable[..., Any]:
        for module in (self, *modules):
            value: Any = module
            for part in path.split("."):
                value = getattr(value, part, None)
            if value is not None:
                found: Callable[..., Any] = value
                return found
        raise AttributeError(f"{self.name} has no function {path}")

    def apply(self, name: str, *values: Any) -> Any:
        """Compute an elementary function by the name that the table of functions gives it."""
        return self.functions[name](*values)

    def hold_in(self, floats: str) -> None:
        """From here on, what the file has in float32, or casts to it, is of this type instead."""
        constant, cast = self.constant, self.cast

        def held(array: Array) -> Any:
            return cast(constant(array), floats) if array.dtype.name == "float32" else constant(array)

        self.floats = floats
        self.constant = held  # type: ignore[method-assign]
        self.cast = lambda value, dtype: cast(value, floats if dtype == "float32" else dtype)  # type: ignore[method-assign]

    def begin(self) -> None:
        """Before each call of a model."""

    def convolution(self, windows: Windows) -> Callable[..., Any]:
        """Make a function of images, kernels and their bias, if any."""
        return lambda image, kernel, bias=None: self.convolve(image, kernel, bias, windows)

    def convolve(self, image: Any, kernel: Any, bias: Any, windows: Windows) -> Any:
        raise NotImplementedError

    def constant(self, array: Array) -> Any:
        raise NotImplementedError

    def kernel(self, array: Array) -> Any:
        """Convert a weight that is only a kernel of convolutions."""
        return self.constant(array)

    def enter(self, value: Any) -> Any:
        """Convert a weight or an input to what operators take."""
        return value

    def cast(self, value: Any, dtype: str) -> Any:
        raise NotImplementedError

    def cast_like(self, value: Any, like: Any) -> Any:
        return value if value.dtype == like.dtype else self.cast(value, self.dtype_of(like))

    def dtype_of(self, value: Any) -> str:
        return str(value.dtype)

    def is_floating(self, value: Any) -> bool:
        return "float" in self.dtype_of(value)

    def floating(self, name: str, value: Any) -> Any:
        """Compute an elementary function of real numbers, of a value that may hold integers, in the value's type."""
        if self.is_floating(value):
            return self.apply(name, value)
        return self.cast(self.apply(name, self.cast(value, "float64")), self.dtype_of(value))

    def scaled(self, value: Any, factor: float) -> Any:
        if self.is_floating(value):
            return value * factor
        return self.cast(self.cast(value, "float64") * factor, self.dtype_of(value))

    def log_sum_exp(self, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Shifted by the largest value, so that nothing overflows."""
        largest = self.reduce("max", value, axes, True)
        finite = self.where(self.apply("IsInfinite", largest), self.full_like(largest, 0), largest)
        total = self.reduce("sum", self.apply("Exp", value - finite), axes, True)
        result = self.apply("Log", total) + finite
        if keepdims:
            return result
        return self.reshape(result, tuple(size for axis, size in enumerate(value.shape) if axis not in axes))

    def to_step(self, value: Any, zero: Any, low: int, high: int) -> Any:
        """Round to whole steps, and add the zero point; what is outside of the limits is clipped afterwards."""
        rounded = self.apply("Round", value)
        return rounded if zero is None else rounded + zero

    def to_fp8(self, value: Any) -> Any:
        """Round to numbers that fp8 has, which stay in the value's type."""
        limited = self.clip_to_numbers(value, -LARGEST, LARGEST)
        return self.cast(self.cast(limited, FP8), self.dtype_of(value))

    def to_dynamic_steps(self, value: Any, zero: Any) -> Any:
        """Round to bytes whose scale was chosen for these very values."""
        return self.cast(self.clip_to_numbers(self.to_step(value, zero, 0, 255), 0, 255), "uint8")

    def gelu(self, value: Any, tanh: bool) -> Any:
        if tanh:
            inner = (value + value * value * value * 0.044715) * math.sqrt(2 / math.pi)
            return value * (self.apply("Tanh", inner) + 1) * 0.5
        return value * (self.apply("Erf", value * math.sqrt(0.5)) + 1) * 0.5

    def silu(self, value: Any) -> Any:
        return value * self.apply("Sigmoid", value)

    def softmax(self, value: Any, axis: int) -> Any:
        powers = self.apply("Exp", value - self.reduce("max", value, (axis,), True))
        return powers / self.reduce("sum", powers, (axis,), True)

    def log_softmax(self, value: Any, axis: int) -> Any:
        shifted = value - self.reduce("max", value, (axis,), True)
        return shifted - self.apply("Log", self.reduce("sum", self.apply("Exp", shifted), (axis,), True))

    def layer_norm(self, value: Any, scale: Any, shift: Any, axis: int, epsilon: float) -> Any:
        axes = tuple(range(axis, len(value.shape)))
        centred = value - self.reduce("mean", value, axes, True)
        variance = self.reduce("mean", centred * centred, axes, True)
        result = centred / self.apply("Sqrt", variance + epsilon) * scale
        return result if shift is None else result + shift

    def rms_norm(self, value: Any, scale: Any, axis: int, epsilon: float) -> Any:
        squares = self.reduce("mean", value * value, tuple(range(axis, len(value.shape))), True)
        return value / self.apply("Sqrt", squares + epsilon) * scale

    def batch_norm(self, image: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float) -> Any:
        rank = len(image.shape) - 2
        factor = scale / self.apply("Sqrt", variance + epsilon)
        return image * self.per_channel(factor, rank) + self.per_channel(shift - mean * factor, rank)

    def batch_norm_of_batch(
        self, image: Any, scale: Any, shift: Any, mean: Any, variance: Any, epsilon: float, momentum: float
    ) -> tuple[Any, ...]:
        """Normalise by the batch, and return the averages that it moves, with the variance of a population."""
        rank = len(image.shape) - 2
        channels = rank + 1 if self.channels_last else 1
        axes = tuple(axis for axis in range(rank + 2) if axis != channels)
        of_batch = self.reduce("mean", image, axes, False)
        centred = image - self.per_channel(of_batch, rank)
        spread = self.reduce("mean", centred * centred, axes, False)
        factor = scale / self.apply("Sqrt", spread + epsilon)
        normalised = centred * self.per_channel(factor, rank) + self.per_channel(shift, rank)
        moved = (old * momentum + new * (1 - momentum) for old, new in ((mean, of_batch), (variance, spread)))
        return normalised, *moved

    def group_norm(self, image: Any, scale: Any, shift: Any, groups: int, epsilon: float) -> Any:
        """Scale and shift are per channel."""
        sizes, rank = tuple(image.shape), len(image.shape) - 2
        if self.channels_last:
            grouped = self.reshape(image, (sizes[0], -1, groups, sizes[-1] // groups))
        else:
            grouped = self.reshape(image, (sizes[0], groups, sizes[1] // groups, -1))
        axes = (1, 3) if self.channels_last else (2, 3)
        centred = grouped - self.reduce("mean", grouped, axes, True)
        variance = self.reduce("mean", centred * centred, axes, True)
        standard = self.reshape(centred / self.apply("Sqrt", variance + epsilon), sizes)
        return standard * self.per_channel(scale, rank) + self.per_channel(shift, rank)

    def attention(self, query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool) -> Any:
        """Of stacks of matrices (..., tokens, size). The mask is added to the scores."""
        rank = len(key.shape)
        turned = self.transpose(key, (*range(rank - 2), rank - 1, rank - 2))
        scores = self.matmul(query * scale, turned)
        if causal:
            rows = self.reshape(self.arange(scores.shape[-2]), (-1, 1))
            columns = self.reshape(self.arange(scores.shape[-1]), (1, -1))
            scores = self.where(rows >= columns, scores, self.full_like(scores, -math.inf))
        if mask is not None:
            scores = scores + mask
        return self.matmul(self.softmax(scores, rank - 1), value)

    def without_gradient(self, value: Any) -> Any:
        """Return the same values, through which nothing is differentiated; itself where the library cannot do that."""
        return value

    def linear(self, value: Any, weight: Any, bias: Any, turned: bool) -> Any:
        product = self.matmul(value, self.transpose(weight, (1, 0)) if turned else weight)
        return product if bias is None else product + bias

    def scatter_rows(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        """Write or add rows of a matrix; ``scatter`` does so with elements of a vector."""
        return self.scatter(value, places, updates, reduction)

    def take_flat(self, value: Any, places: Any) -> Any:
        """Elements by their places in the flat array; in the shape of the places."""
        return self.reshape(
            self.take_rows(self.reshape(value, (-1,)), self.reshape(places, (-1,))), tuple(places.shape)
        )

    def per_channel(self, value: Any, rank: int) -> Any:
        """One number per channel, shaped to go with images of so many spatial axes."""
        return value if self.channels_last else self.reshape(value, (-1, *(1,) * rank))

    def per_place(self, value: Any) -> Any:
        """One number per place of an image, shaped to go with images."""
        return self.reshape(value, (*value.shape, 1)) if self.channels_last else value

    def average_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], counted: bool
    ) -> Any:
        """None where the library's own pool cannot do it; then the pool is a sum and a division."""
        return None

    def clip_to_numbers(self, value: Any, low: float | None, high: float | None) -> Any:
        value = value if low is None else self.apply("Maximum", value, self.number_like(low, value))
        return value if high is None else self.apply("Minimum", value, self.number_like(high, value))

    def number_like(self, number: float, value: Any) -> Any:
        """Convert a Python number to what the library's binary functions take together with a value."""
        return number

    def power_of_number(self, value: Any, exponent: float) -> Any:
        return self.apply("Power", value, exponent)

    def split(self, value: Any, sizes: Sequence[int], axis: int) -> Sequence[Any]:
        parts, start = [], 0
        for size in sizes:
            kept = [slice(None)] * len(value.shape)
            kept[axis] = slice(start, start + size)
            parts.append(value[tuple(kept)])
            start += size
        return parts

    def lstm(self, x: Any, by_input: Any, by_state: Any, bias: Any, start: Any, start_cell: Any) -> Any:
        """Compute ONNX's LSTM of usual activations; None where the library has none of its own."""
        return None

    def scan(self, step: Callable[..., Any], state: tuple[Any, ...], rows: Any) -> tuple[Any, ...]:
        """Compute ``state = step(state, row)`` for every row, and return the states after each of them."""
        found = []
        for at in range(rows.shape[0]):
            state = step(state, rows[at])
            found.append(state)
        return tuple(
            self.concat([self.reshape(each, (1, *each.shape)) for each in kind], 0) for kind in zip(*found, strict=True)
        )

    # The functions that most modules have under one name.
    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        return self.module.reshape(value, shape)

    def transpose(self, value: Any, perm: Sequence[int]) -> Any:
        return self.module.transpose(value, perm)

    def flip(self, value: Any, axes: Sequence[int]) -> Any:
        return self.module.flip(value, tuple(axes))

    def broadcast(self, value: Any, shape: Sequence[int]) -> Any:
        return self.module.broadcast_to(value, shape)

    def full_like(self, value: Any, number: float) -> Any:
        return self.module.full_like(value, number)

    def argument(self, value: Any, axis: int, largest: bool) -> Any:
        return (self.module.argmax if largest else self.module.argmin)(value, axis)

    def accumulate(self, kind: str, value: Any, axis: int) -> Any:
        return (self.module.cumsum if kind == "sum" else self.module.cumprod)(value, axis, dtype=value.dtype)

    def tile(self, value: Any, repeats: Sequence[int]) -> Any:
        return self.module.tile(value, repeats)

    def where(self, condition: Any, value: Any, other: Any) -> Any:
        return self.module.where(condition, value, other)

    def einsum(self, equation: str, *values: Any) -> Any:
        return self.module.einsum(equation, *values)

    def determinant(self, value: Any) -> Any:
        return self.module.linalg.det(value)

    # The functions that every library must have.
    def concat(self, values: Sequence[Any], axis: int) -> Any:
        raise NotImplementedError

    def matmul(self, left: Any, right: Any) -> Any:
        raise NotImplementedError

    def reduce(self, kind: str, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        raise NotImplementedError

    def scatter(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        raise NotImplementedError

    def arange(self, size: int) -> Any:
        """From 0, int64 or the library's usual integer."""
        raise NotImplementedError

    def take_rows(self, value: Any, places: Any) -> Any:
        """Rows by non-negative places of any shape."""
        raise NotImplementedError


class ArrayModule(Library):
    """A library whose module has NumPy's functions."""

    def concat(self, values: Sequence[Any], axis: int) -> Any:
        return self.module.concatenate(values, axis)

    def arange(self, size: int) -> Any:
        return self.module.arange(size)

    def gather(self, value: Any, places: Any, axis: int) -> Any:
        return self.module.take(value, places, axis=axis)

    def take_rows(self, value: Any, places: Any) -> Any:
        return self.module.take(value, places, axis=0)

    def matmul(self, left: Any, right: Any) -> Any:
        return self.module.matmul(left, right)

    def _extreme(self, value: Any, *, lowest: bool) -> Any:
        """Return the lowest or the highest number of the value's type."""
        if value.dtype == bool:
            return not lowest
        if self.is_floating(value):
            return -math.inf if lowest else math.inf
        limits = self.module.iinfo(value.dtype)
        return limits.min if lowest else limits.max
