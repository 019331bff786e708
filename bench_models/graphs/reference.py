"""The graphs in NumPy, in the precision of the weights, and differentiated for the steps of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from fairlap.bench_models.graphs.net import GraphModel
from fairlap.bench_models.graphs.onnx_model import graph_at
from fairlap.models.arrays import Arrays
from fairlap.models.checks.differentiation import Traced, plain
from fairlap.models.onnx_import.build import ImportedModel
from fairlap.models.onnx_import.libraries.base import Windows
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary, shifted
from fairlap.models.onnx_import.libraries.windows import Pads, kernel_positions
from fairlap.models.onnx_import.training import in_training
from fairlap.models.sources.onnx_graphs.imported_reference import of_file


# Convolutions of volumes that are differentiated. What a kernel of three sides meets is found again on the way back:
# kept, it would be 27 times the volume in every layer.
def convolved(
    result: Any, image: Any, kernel: Any, strides: Sequence[int], pads: Pads, dilations: Sequence[int]
) -> Traced:
    """Trace the ``result`` of a convolution in one group, without a bias, back to its image and its kernel."""
    margins = [(0, 0), (0, 0), *pads]
    inner = tuple(slice(before, before + size) for size, (before, _) in zip(image.shape, margins, strict=True))
    width = kernel.shape[2:]
    whole, weights = plain(image), plain(kernel)
    sizes = result.shape[2:]

    def by_image(gradient: Any) -> Any:
        columns = gradient.reshape(*gradient.shape[:2], -1)
        shape = [size + before + after for size, (before, after) in zip(whole.shape, margins, strict=True)]
        found = np.zeros_like(gradient, shape=shape)
        for place in kernel_positions(width):
            part = np.matmul(weights[(slice(None), slice(None), *place)].T, columns)
            shifted(found, place, sizes, strides, dilations)[...] += part.reshape(*whole.shape[:2], *sizes)
        return found[inner]

    def by_kernel(gradient: Any) -> Any:
        rows, padded = gradient.reshape(*gradient.shape[:2], -1), np.pad(whole, margins)
        found = np.zeros_like(gradient, shape=weights.shape)
        for place in kernel_positions(width):
            met = shifted(padded, place, sizes, strides, dilations).reshape(*whole.shape[:2], -1)
            found[(slice(None), slice(None), *place)] = np.matmul(rows, met.swapaxes(1, 2)).sum(axis=0)
        return found

    rules = [(image, by_image), (kernel, by_kernel)]
    return Traced(result, [(array, rule) for array, rule in rules if isinstance(array, Traced)])


Statistics = dict[str, Any]
_VOLUME = 3  # sides of a kernel
_Forward = Callable[[Arrays, Arrays], Mapping[str, Any]]


class Implementation:
    def __init__(self, model: GraphModel) -> None:
        self._model = model

    def forward(self, weights: Arrays, inputs: Arrays, statistics: Statistics | None = None) -> dict[str, Any]:
        """With ``statistics``, as in training: normalised by the batch, whose moving averages are put there."""
        batch = len(next(iter(inputs.values())))
        wide = any(array.dtype == np.float64 for array in weights.values())
        traced = any(isinstance(array, Traced) for array in weights.values())
        forward, moved = _forward_at(self._model, batch, wide, traced, statistics is not None)
        found = dict(forward(weights, inputs))
        if statistics is not None:
            statistics |= {name: plain(found.pop(after)) for name, after in moved.items()}
        return found


@cache
def _forward_at(
    model: GraphModel, batch: int, wide: bool, traced: bool, training: bool
) -> tuple[_Forward, Mapping[str, str]]:
    graph = graph_at(model, batch)
    moved: Mapping[str, str] = {}
    if training:
        graph, moved = in_training(graph)
    compute = of_file(ImportedModel(graph, (TracedLibrary if traced else NumPyLibrary)(wide=wide)))

    def forward(weights: Arrays, inputs: Arrays) -> Mapping[str, Any]:
        return compute({**graph.weights, **weights}, inputs)  # the graph's own arrays are constants

    return forward, moved


class TracedLibrary(NumPyLibrary):
    """NumPy on arrays that remember what they were made of, for the chain rule."""

    widens = False

    def enter(self, value: Any) -> Any:
        return value if isinstance(value, Traced) else self.constant(np.asanyarray(value))

    def reduce(self, kind: str, value: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        if isinstance(value, Traced):
            return getattr(value, kind)(axis=axes, keepdims=keepdims)
        return super().reduce(kind, value, axes, keepdims)

    def convolve(self, image: Any, kernel: Any, bias: Any, windows: Windows) -> Any:
        strides, pads, dilations, group = windows
        if len(strides) < _VOLUME or group > 1:
            return super().convolve(image, kernel, bias, windows)
        result = super().convolve(plain(image), plain(kernel), None, windows)
        traced = convolved(result, image, kernel, strides, list(pads), dilations)
        return traced if bias is None else traced + self.per_channel(bias, len(strides))

    def full_like(self, value: Any, number: float) -> Any:
        return super().full_like(plain(value), number)

    def scatter(self, value: Any, places: Any, updates: Any, reduction: str) -> Any:
        if not isinstance(value, Traced) and not isinstance(updates, Traced):
            return super().scatter(value, places, updates, reduction)
        if reduction != "add":
            raise NotImplementedError(f"the gradient of a scatter that does not add but {reduction}")
        whole = super().scatter(plain(value), places, plain(updates), reduction)
        rules = [(value, lambda gradient: gradient), (updates, lambda gradient: gradient[places])]
        return Traced(whole, [(array, rule) for array, rule in rules if isinstance(array, Traced)])
