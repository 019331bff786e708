"""JAX. Images have their channels last, as XLA prefers them on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.libraries.base import ArrayModule, Windows
from fairlap.models.onnx_import.libraries.control import JaxControl

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "prod": "prod"}
_SCATTERS = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


class JaxLibrary(JaxControl, ArrayModule):
    name = "jax"
    channels_last = True

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp = jax, jnp
        super().__init__(jnp, jax.nn, jax.lax)

    def constant(self, array: Array) -> Any:
        return self.jnp.asarray(array, self._dtype(array.dtype))

    def enter(self, value: Any) -> Any:
        return self.jnp.asarray(value)

    def cast(self, value: Any, dtype: str) -> Any:
        return value.astype(self._dtype(dtype))

    def _dtype(self, dtype: Any) -> Any:
        """64 bits are 32 unless they are enabled in JAX."""
        return self.jax.dtypes.canonicalize_dtype(np.dtype(dtype))

    def without_gradient(self, value: Any) -> Any:
        return self.jax.lax.stop_gradient(value)

    def is_floating(self, value: Any) -> bool:
        return bool(self.jnp.issubdtype(value.dtype, self.jnp.floating))

    def truncated_division(self, left: Any, right: Any) -> Any:
        return self.jax.lax.div(*self.jnp.broadcast_arrays(left, right))

    def scan(self, step: Any, state: tuple[Any, ...], rows: Any) -> tuple[Any, ...]:
        def both(before: tuple[Any, ...], row: Any) -> tuple[Any, Any]:
            after = step(before, row)
            return after, after

        found: tuple[Any, ...] = self.jax.lax.scan(both, state, rows)[1]
        return found

    def pad(self, value: Any, pads: Sequence[tuple[int, int]], number: float) -> Any:
        if not any(edge for pair in pads for edge in pair):
            return value
        return self.jnp.pad(value, pads, constant_values=number)

    def reduce(self, kind: str, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        initial: dict[str, Any] = {}
        if kind in ("max", "min") and not all(value.shape[axis] for axis in axes):
            initial = {"initial": self._extreme(value, lowest=kind == "max")}
        function = getattr(self.jnp, _REDUCTIONS[kind])
        return function(value, axis=axes, keepdims=keepdims, **initial).astype(value.dtype)

    def log_sum_exp(self, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return self.jax.nn.logsumexp(value, axis=axes, keepdims=keepdims)

    def top_k(self, value: Any, k: int, axis: int, largest: bool) -> Any:
        places = self.jnp.argsort(value, axis=axis, stable=True, descending=largest)
        places = self.jax.lax.slice_in_dim(places, 0, k, axis=axis)
        return self.jnp.take_along_axis(value, places, axis), places

    def take(self, value: Any, places: Sequence[int], axis: int) -> Any:
        return self.jnp.take(value, np.asarray(places, np.int32), axis=axis)

    def scatter(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        return getattr(value.at[places], _SCATTERS[reduction])(updates)

    def softmax(self, value: Any, axis: int) -> Any:
        return self.jax.nn.softmax(value, axis=axis)

    def log_softmax(self, value: Any, axis: int) -> Any:
        return self.jax.nn.log_softmax(value, axis=axis)

    def gelu(self, value: Any, tanh: bool) -> Any:
        return self.jax.nn.gelu(value, approximate=tanh)

    def layer_norm(self, value: Any, scale: Any, shift: Any, axis: int, epsilon: float) -> Any:
        axes = tuple(range(axis, len(value.shape)))
        result = self.jax.nn.standardize(value, axis=axes, epsilon=epsilon) * scale
        return result if shift is None else result + shift

    def convolve(self, image: Any, kernel: Any, bias: Any, windows: Windows) -> Any:
        result = self.jax.lax.conv_general_dilated(
            image,
            kernel,
            window_strides=tuple(windows.strides),
            padding=tuple(windows.pads),
            rhs_dilation=tuple(windows.dilations),
            dimension_numbers=_dimension_numbers(len(windows.strides)),
            feature_group_count=windows.group,
        )
        return result if bias is None else result + bias

    def convolve_transposed(
        self, image: Any, kernel: Any, strides: Sequence[int], dilations: Sequence[int], group: int
    ) -> Any:
        """Convolve the stretched image with the kernel turned; the kernel is (spatial, out / group, in)."""
        rank = len(strides)
        *width, outward, inward = kernel.shape
        turned = self.jnp.flip(kernel, tuple(range(rank))).reshape(*width, outward, group, inward // group)
        turned = self.jnp.moveaxis(turned, (rank + 2, rank + 1, rank), (rank, rank + 1, rank + 2))
        return self.jax.lax.conv_general_dilated(
            image,
            turned.reshape(*width, inward // group, group * outward),
            window_strides=(1,) * rank,
            padding=tuple(((one - 1) * each,) * 2 for one, each in zip(width, dilations, strict=True)),
            lhs_dilation=tuple(strides),
            rhs_dilation=tuple(dilations),
            dimension_numbers=_dimension_numbers(rank),
            feature_group_count=group,
        )

    def max_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Any:
        lowest = np.asarray(self._extreme(image, lowest=True), image.dtype)
        return self._pooled(self.jax.lax.max, lowest, image, kernel, strides, pads, dilations)

    def sum_pool(
        self, image: Any, kernel: Sequence[int], strides: Sequence[int], pads: Any, dilations: Sequence[int]
    ) -> Any:
        return self._pooled(self.jax.lax.add, np.zeros((), image.dtype), image, kernel, strides, pads, dilations)

    def _pooled(self, join: Any, start: Any, image: Any, kernel: Any, strides: Any, pads: Any, dilations: Any) -> Any:
        return self.jax.lax.reduce_window(
            image,
            start,
            join,
            (1, *kernel, 1),
            (1, *strides, 1),
            ((0, 0), *pads, (0, 0)),
            window_dilation=(1, *dilations, 1),
        )


def _dimension_numbers(rank: int) -> tuple[str, str, str]:
    spatial = "DHW"[-rank:]
    return f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"
