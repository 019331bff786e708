"""Quantization to integers of eight and sixteen bits, and to fp8."""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlap.models.fp8_graphs.fp8_numbers import FP8
from fairlap.models.onnx_import.libraries.base import Windows
from fairlap.models.onnx_import.operators.layers.convolution import CONVOLUTION_READS, resolve_convolution
from fairlap.models.onnx_import.operators.registry import Attributes, operator

LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
ROUNDING = frozenset(("DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear"))
"""Operators whose results are rounded to steps; the others compute exactly with what was rounded before."""


def _spread(library: Any, parameter: Any, value: Any, axis: int, block: int) -> Any:
    """Scale or zero point, shaped to go with a value: one for all, one per place of an axis, or one per block."""
    rank = len(value.shape)
    if len(parameter.shape) == 0 or (len(parameter.shape) == 1 and parameter.shape[0] == 1):
        return library.reshape(parameter, ())
    if len(parameter.shape) == 1 and not block:
        return library.reshape(parameter, tuple(-1 if at == axis else 1 for at in range(rank)))
    places = [place // block for place in range(value.shape[axis])]
    return library.take(parameter, places, axis)


def _refuse_type(attributes: Attributes) -> str | None:
    if attributes["dtype"] == FP8:
        return None if attributes.get("saturate", 1) else "fp8 without saturation, which makes NaN, is not supported"
    return None if attributes["dtype"] in LIMITS else f"the type {attributes['dtype']} is not supported"


@operator("QuantizeLinear", reads=("output_dtype", "precision"), refuse=_refuse_type)
def quantize(
    library: Any,
    value: Any,
    scale: Any,
    zero: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    saturate: int = 1,  # of fp8 alone
    dtype: str,
) -> Any:
    axis %= max(1, len(value.shape))
    wide = value if library.is_floating(value) else library.cast(value, "float32")
    wide = wide / library.cast_like(_spread(library, scale, value, axis, block_size), wide)
    if dtype == FP8:  # whose zero point is 0
        return library.to_fp8(wide)
    if zero is not None:
        zero = library.cast_like(_spread(library, zero, value, axis, block_size), wide)
    return _in_steps(library, wide, zero, dtype)


@operator("DequantizeLinear", reads=("output_dtype",))
def dequantize(
    library: Any,
    value: Any,
    scale: Any,
    zero: Any = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: str,
) -> Any:
    axis %= max(1, len(value.shape))
    wide = library.cast(value, library.dtype_of(scale))
    if zero is not None:
        wide = wide - library.cast_like(_spread(library, zero, value, axis, block_size), wide)
    return library.cast(wide * _spread(library, scale, value, axis, block_size), dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(library: Any, value: Any) -> Any:
    axes = tuple(range(len(value.shape)))
    low = library.clip_to_numbers(library.reduce("min", value, axes, False), None, 0)
    high = library.clip_to_numbers(library.reduce("max", value, axes, False), 0, None)
    scale = (high - low) / 255
    scale = library.where(scale == 0, library.full_like(scale, 1), scale)  # of zeros alone, as in ONNX Runtime
    zero = library.clip_to_numbers(library.apply("Round", (low * -1) / scale), 0, 255)
    return library.to_dynamic_steps(value / scale, zero), scale, library.cast(zero, "uint8")


def _centred(library: Any, value: Any, zero: Any, axis: int) -> Any:
    """Less its zero point, which may be one per place of an axis; as real numbers, in which sums stay exact."""
    wide = library.cast(value, "float64")
    if zero is None:
        return wide
    if len(zero.shape) < 2:
        zero = _spread(library, zero, value, axis, 0)
    return wide - library.cast(zero, "float64")


@operator("MatMulInteger")
def matmul_integer(library: Any, left: Any, right: Any, left_zero: Any = None, right_zero: Any = None) -> Any:
    left = _centred(library, left, left_zero, len(left.shape) - 2)
    right = _centred(library, right, right_zero, len(right.shape) - 1)
    return library.cast(library.matmul(left, right), "int32")


@operator("QLinearMatMul")
def quantized_matmul(
    library: Any,
    left: Any,
    left_scale: Any,
    left_zero: Any,
    right: Any,
    right_scale: Any,
    right_zero: Any,
    scale: Any,
    zero: Any,
    *,
    dtype: str,
) -> Any:
    product = library.matmul(
        _centred(library, left, left_zero, len(left.shape) - 2),
        _centred(library, right, right_zero, len(right.shape) - 1),
    )
    factor = library.cast(left_scale, "float64") * library.cast(right_scale, "float64")
    return _requantized(library, product * (factor / library.cast(scale, "float64")), zero, dtype)


@operator(
    "ConvInteger",
    layout="spatial",
    kernels={1: "kernel"},
    resolve=resolve_convolution,
    reads=CONVOLUTION_READS,
    folds=False,
)
def convolve_integer(
    library: Any, image: Any, kernel: Any, image_zero: Any = None, kernel_zero: Any = None, **attributes: Any
) -> Any:
    out = len(kernel.shape) - 1 if library.channels_last else 0
    left, right = _centred(library, image, image_zero, 0), _centred(library, kernel, kernel_zero, out)
    return library.cast(_convolved(library, left, right, attributes), "int32")


@operator(
    "QLinearConv",
    layout="spatial",
    kernels={3: "kernel"},
    resolve=partial(resolve_convolution, kernel_place=3),
    reads=CONVOLUTION_READS,
    folds=False,
)
def quantized_convolve(
    library: Any,
    image: Any,
    image_scale: Any,
    image_zero: Any,
    kernel: Any,
    kernel_scale: Any,
    kernel_zero: Any,
    scale: Any,
    zero: Any,
    bias: Any = None,
    **attributes: Any,
) -> Any:
    out = len(kernel.shape) - 1 if library.channels_last else 0
    left, right = _centred(library, image, image_zero, 0), _centred(library, kernel, kernel_zero, out)
    result = _convolved(library, left, right, attributes)
    rank = len(image.shape) - 2
    if bias is not None:
        result = result + library.per_channel(library.cast(bias, "float64"), rank)
    factor = library.cast(image_scale, "float64") * library.cast(kernel_scale, "float64")
    factor = factor / library.cast(scale, "float64")
    if len(kernel_scale.shape) == 1 and kernel_scale.shape[0] != 1:
        factor = library.per_channel(factor, rank)
    else:
        factor = library.reshape(factor, ())
    return _requantized(library, result * factor, zero, library.dtype_of(zero))


def _convolved(library: Any, image: Any, kernel: Any, attributes: dict[str, Any]) -> Any:
    windows = Windows(*(attributes[each] for each in Windows._fields))
    return library.convolve(image, kernel, None, windows)


def _requantized(library: Any, value: Any, zero: Any, dtype: str) -> Any:
    return _in_steps(library, value, library.cast(zero, "float64"), dtype)


def _in_steps(library: Any, value: Any, zero: Any, dtype: str) -> Any:
    low, high = LIMITS[dtype]
    return library.cast(library.clip_to_numbers(library.to_step(value, zero, low, high), low, high), dtype)
