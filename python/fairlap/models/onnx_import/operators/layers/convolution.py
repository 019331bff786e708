"""Convolutions. Images and kernels come in the layout of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.models.onnx_import.graph import Tensor
from fairlap.models.onnx_import.libraries.base import Windows
from fairlap.models.onnx_import.libraries.windows import window_pads
from fairlap.models.onnx_import.operators.registry import Attributes, operator

CONVOLUTION_READS = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def resolve_convolution(
    attributes: Attributes, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], kernel_place: int = 1
) -> Attributes:
    image, kernel = inputs[0], inputs[kernel_place]
    assert image is not None
    assert kernel is not None
    rank = len(image.shape) - 2
    width = tuple(attributes.get("kernel_shape") or kernel.shape[2:])
    strides = tuple(attributes.get("strides") or (1,) * rank)
    dilations = tuple(attributes.get("dilations") or (1,) * rank)
    auto_pad = attributes.get("auto_pad", "NOTSET")
    pads = window_pads(image.shape[2:], width, strides, dilations, attributes.get("pads"), auto_pad)
    return {"strides": strides, "dilations": dilations, "pads": pads, "group": attributes.get("group", 1)}


@operator(
    "Conv",
    layout="spatial",
    kernels={1: "kernel"},
    resolve=resolve_convolution,
    reads=CONVOLUTION_READS,
    folds=False,
    bind=lambda library, attributes: library.convolution(Windows(**attributes)),
)
def convolve(
    library: Any,
    image: Any,
    kernel: Any,
    bias: Any = None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Any,
    group: int,
) -> Any:
    return library.convolve(image, kernel, bias, Windows(strides, pads, dilations, group))


def _resolve_transposed(
    attributes: Attributes, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Attributes:
    """ONNX gives paddings or the shape of the result; what remains is cut off or added at the end."""
    image, kernel = inputs[0], inputs[1]
    assert image is not None
    assert kernel is not None
    rank = len(image.shape) - 2
    width = tuple(attributes.get("kernel_shape") or kernel.shape[2:])
    strides = tuple(attributes.get("strides") or (1,) * rank)
    dilations = tuple(attributes.get("dilations") or (1,) * rank)
    extra = tuple(attributes.get("output_padding") or (0,) * rank)
    full = [
        (size - 1) * stride + (one - 1) * dilation + 1 + more
        for size, stride, one, dilation, more in zip(image.shape[2:], strides, width, dilations, extra, strict=True)
    ]
    wanted = outputs[0].shape[2:]
    auto_pad = attributes.get("auto_pad", "NOTSET")
    if attributes.get("output_shape") or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        cut = [max(0, have - want) for have, want in zip(full, wanted, strict=True)]
        starts = [each - each // 2 if auto_pad != "SAME_UPPER" else each // 2 for each in cut]
    else:
        starts = list(attributes.get("pads") or (0,) * rank)[:rank]
    return {
        "strides": strides,
        "dilations": dilations,
        "group": attributes.get("group", 1),
        "starts": tuple(starts),
        "wanted": tuple(wanted),
    }


@operator(
    "ConvTranspose",
    layout="spatial",
    kernels={1: "kernel_of_transposed"},
    resolve=_resolve_transposed,
    reads=(*CONVOLUTION_READS, "output_padding", "output_shape"),
    folds=False,
)
def convolve_transposed(
    library: Any,
    image: Any,
    kernel: Any,
    bias: Any = None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
    starts: Sequence[int],
    wanted: Sequence[int],
) -> Any:
    """Every pixel spreads its kernel; the part from ``starts`` on, of the size ``wanted``, is the result."""
    spread = library.convolve_transposed(image, kernel, strides, dilations, group)
    rank = len(strides)
    first = 1 if library.channels_last else 2
    kept = [slice(None)] * (rank + 2)
    missing = [(0, 0)] * (rank + 2)
    for axis, (start, size) in enumerate(zip(starts, wanted, strict=True)):
        have = spread.shape[first + axis]
        kept[first + axis] = slice(start, min(have, start + size))
        missing[first + axis] = (0, max(0, start + size - have))
    result = spread[tuple(kept)]
    if any(high for _, high in missing):
        result = library.pad(result, missing, 0)
    return result if bias is None else result + library.per_channel(bias, rank)
