"""Convolutions, pools and other operators of images, whose channels are last in LiteRT and first in ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlap.models.sources.litert_files.dynamic_steps import in_dynamic_steps
from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.operation import (
    Operation,
    Translation,
    activated,
    product_steps,
    whole_numbers,
)

_SAME = 0  # Padding; the other one is VALID
_TO_CHANNELS_FIRST, _TO_CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_POOLS = {"MAX_POOL_2D": "MaxPool", "AVERAGE_POOL_2D": "AveragePool"}
_BLOCKS = {"DEPTH_TO_SPACE": "DepthToSpace", "SPACE_TO_DEPTH": "SpaceToDepth"}


def _require_image(op: Operation, place: int) -> None:
    if len(op.shape(place)) != 4:
        raise Untranslated(f"{op.kind} of {len(op.shape(place))} axes")


def _in_channels_first(op: Operation, kind: str, place: int, *others: str, **attributes: Any) -> str:
    """Apply an operator of ONNX to the image that is given at this place."""
    _require_image(op, place)
    return _applied(op, kind, op.given(place, _TO_CHANNELS_FIRST), *others, **attributes)


def _applied(op: Operation, kind: str, image: str, *others: str, **attributes: Any) -> str:
    found = activated(op, op.node(kind, [image, *others], **attributes))
    return op.moved_result(found, _TO_CHANNELS_LAST)


def _pads(op: Operation, sizes: Sequence[int], results: Sequence[int], windows: Sequence[int]) -> list[int]:
    """Pad both ends of each axis, the end by one more where that is uneven."""
    if op.options.padding != _SAME:
        return [0] * (2 * len(sizes))
    whole = [
        max((result - 1) * stride + window - size, 0)
        for size, result, window, stride in zip(sizes, results, windows, _strides(op), strict=True)
    ]
    return [each // 2 for each in whole] + [each - each // 2 for each in whole]


def _strides(op: Operation) -> list[int]:
    return [int(op.options.strideH), int(op.options.strideW)]


def _convolution(op: Operation) -> str:
    """Kernels are (out, height, width, in), and those by channel (1, height, width, out)."""
    kernel, by_channel = op.constant(1), op.kind == "DEPTHWISE_CONV_2D"
    sizes = [int(size) for size in kernel.shape[1:3]]
    dilations = [int(op.options.dilationHFactor), int(op.options.dilationWFactor)]
    windows = [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]
    channels = op.shape(0)[-1]
    _require_image(op, 0)
    hybrid = op.steps(0) is None and op.is_in_steps(1)
    image = op.given(0, _TO_CHANNELS_FIRST)
    return _applied(
        op,
        "Conv",
        in_dynamic_steps(op, image, 4) if hybrid else image,
        op.given(1, (3, 0, 1, 2) if by_channel else (0, 3, 1, 2)),
        *op.bias(2, product_steps(op)),
        group=channels if by_channel else channels // int(kernel.shape[-1]),
        kernel_shape=sizes,
        strides=_strides(op),
        dilations=dilations,
        pads=_pads(op, op.shape(0)[1:3], op.result_shape[1:3], windows),
    )


def _transposed_convolution(op: Operation) -> str:
    """Pad as the convolution does of which this is the gradient: its result is what that would be given."""
    kernel = op.constant(1)
    windows = [int(size) for size in kernel.shape[1:3]]
    sizes, results, strides = op.shape(2)[1:3], op.result_shape[1:3], _strides(op)
    reached = [(size - 1) * stride + window for size, stride, window in zip(sizes, strides, windows, strict=True)]
    return _in_channels_first(
        op,
        "ConvTranspose",
        2,
        op.given(1, (3, 0, 1, 2)),
        *op.bias(3, product_steps(op, 2)),
        kernel_shape=windows,
        strides=strides,
        pads=_pads(op, results, sizes, windows),
        output_padding=[max(result - own, 0) for result, own in zip(results, reached, strict=True)],
    )


def _pool(op: Operation) -> str:
    windows = [int(op.options.filterHeight), int(op.options.filterWidth)]
    pads = _pads(op, op.shape(0)[1:3], op.result_shape[1:3], windows)
    return _in_channels_first(op, _POOLS[op.kind], 0, kernel_shape=windows, strides=_strides(op), pads=pads)


def _resized(op: Operation) -> str:
    places = "half_pixel" if op.options.halfPixelCenters else "asymmetric"
    if op.options.alignCorners:
        places = "align_corners"
    how: dict[str, str] = {"mode": "linear"}
    if op.kind == "RESIZE_NEAREST_NEIGHBOR":
        how = {"mode": "nearest", "nearest_mode": "floor" if places == "asymmetric" else "round_prefer_ceil"}
    batch, height, width, channels = op.result_shape
    sizes = op.hold(whole_numbers([batch, channels, height, width]))
    return _in_channels_first(op, "Resize", 0, "", "", sizes, coordinate_transformation_mode=places, **how)


def _blocks(op: Operation) -> str:
    return _in_channels_first(op, _BLOCKS[op.kind], 0, blocksize=int(op.options.blockSize))


IMAGE_OPERATORS: Mapping[str, Translation] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _convolution),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resized),
    **dict.fromkeys(_BLOCKS, _blocks),
    "TRANSPOSE_CONV": _transposed_convolution,
}
