"""Pools. Images come in the layout of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.graph import Tensor
from fairlap.models.onnx_import.libraries.windows import elements_per_window, extended_pads, window_pads
from fairlap.models.onnx_import.operators.registry import Attributes, operator

_READS = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")


def _resolve(attributes: Attributes, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> Attributes:
    image = inputs[0]
    assert image is not None
    kernel = tuple(attributes["kernel_shape"])
    rank = len(kernel)
    sizes, wanted = image.shape[2:], outputs[0].shape[2:]
    strides = tuple(attributes.get("strides") or (1,) * rank)
    dilations = tuple(attributes.get("dilations") or (1,) * rank)
    auto_pad = attributes.get("auto_pad", "NOTSET")
    own = window_pads(sizes, kernel, strides, dilations, attributes.get("pads"), auto_pad)
    pads = extended_pads(sizes, kernel, strides, dilations, own, wanted)
    resolved = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    return {**resolved, **{name: attributes[name] for name in ("p",) if name in attributes}}


def _resolve_average(attributes: Attributes, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> Attributes:
    """``native`` if the library's own pool takes the same mean: it knows no windows that reach over the edge."""
    image = inputs[0]
    assert image is not None
    resolved = _resolve(attributes, inputs, outputs)
    kernel, strides, dilations = resolved["kernel_shape"], resolved["strides"], resolved["dilations"]
    sizes, wanted = image.shape[2:], outputs[0].shape[2:]
    own = window_pads(sizes, kernel, strides, dilations, attributes.get("pads"), attributes.get("auto_pad", "NOTSET"))
    counted = bool(attributes.get("count_include_pad", 0))
    counts = elements_per_window(sizes, kernel, strides, dilations, own, wanted, counted)
    divisor: Any = int(counts.flat[0])
    if (counts != divisor).any():
        divisor = counts.astype(image.dtype if image.dtype != "bfloat16" else np.float32)
    native = resolved["pads"] == own and all(low == high for low, high in own) and set(dilations) == {1}
    return {**resolved, "divisor": divisor, "native": native, "counted": counted}


def _refuse_places(attributes: Attributes) -> str | None:
    return "the places of the largest elements are not supported" if attributes["count"] > 1 else None


@operator(
    "MaxPool", layout="spatial", resolve=_resolve, reads=(*_READS, "storage_order"), refuse=_refuse_places, folds=False
)
def max_pool(
    library: Any,
    image: Any,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Any,
    count: int,
) -> Any:
    return library.max_pool(image, kernel_shape, strides, pads, dilations)


@operator("AveragePool", layout="spatial", resolve=_resolve_average, reads=(*_READS, "count_include_pad"), folds=False)
def average_pool(
    library: Any,
    image: Any,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Any,
    divisor: Any,
    native: bool,
    counted: bool,
) -> Any:
    if native:
        pooled = library.average_pool(image, kernel_shape, strides, [low for low, _ in pads], counted)
        if pooled is not None:
            return pooled
    total = library.sum_pool(image, kernel_shape, strides, pads, dilations)
    return total / (divisor if isinstance(divisor, int) else library.per_place(divisor))


@operator("LpPool", layout="spatial", resolve=_resolve, reads=_READS, folds=False)
def lp_pool(
    library: Any,
    image: Any,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Any,
    p: int = 2,
) -> Any:
    raised = library.power_of_number(library.apply("Abs", image), p)
    return library.power_of_number(library.sum_pool(raised, kernel_shape, strides, pads, dilations), 1 / p)


def _spatial_axes(library: Any, image: Any) -> tuple[int, ...]:
    first = 1 if library.channels_last else 2
    return tuple(range(first, first + len(image.shape) - 2))


@operator("GlobalAveragePool", layout="spatial", folds=False)
def global_average_pool(library: Any, image: Any) -> Any:
    return library.reduce("mean", image, _spatial_axes(library, image), True)


@operator("GlobalMaxPool", layout="spatial", folds=False)
def global_max_pool(library: Any, image: Any) -> Any:
    return library.reduce("max", image, _spatial_axes(library, image), True)


@operator("GlobalLpPool", layout="spatial", folds=False)
def global_lp_pool(library: Any, image: Any, *, p: int = 2) -> Any:
    raised = library.power_of_number(library.apply("Abs", image), p)
    total = library.reduce("sum", raised, _spatial_axes(library, image), True)
    return library.power_of_number(total, 1 / p)


@operator("LRN", layout="spatial", folds=False)
def local_response_normalization(
    library: Any, image: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:
    """Over neighbouring channels."""
    rank = len(image.shape)
    axis = rank - 1 if library.channels_last else 1
    low = (size - 1) // 2
    pads = [(low, size - 1 - low) if at == axis else (0, 0) for at in range(rank)]
    squares = library.pad(image * image, pads, 0)
    total: Any = None
    for shift in range(size):
        kept = [slice(None)] * rank
        kept[axis] = slice(shift, shift + image.shape[axis])
        total = squares[tuple(kept)] if total is None else total + squares[tuple(kept)]
    return image / library.power_of_number(total * (alpha / size) + bias, beta)
