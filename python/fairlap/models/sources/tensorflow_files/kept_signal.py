"""Weights of a Keras model that keep its signal, where drawn ones let it vanish from layer to layer.

Keras draws a kernel of a depthwise convolution so small that values shrink by the root of its channels. After some tens
of layers what depends on the inputs is below rounding, and no check could tell an answer from one that was kept or
computed by half. Then each kernel is multiplied once, from the first layer on, so that what leaves its layer has a
spread of about one: "All you need is a good init" (Mishkin and Matas, 2016), without its orthonormal start. Factors are
powers of two, which round nothing and do not follow the last bits of what a machine computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel

_MOVED = 1e-4  # relative to an output: less than this much is not far beyond what rounding may move
_VANISHED = 1e-3  # the spread of values after a layer; of trained ones it is about one

_Look = Callable[[Any, float], None]


def keep_signal(model: KerasModel, first: Arrays, second: Arrays) -> Notice | None:
    """Multiply the model's kernels in place, and say so; None where it hides no inputs, or for another reason."""
    if _moves(model, first, second):
        return None
    spreads = _spreads(model, first)
    if min(spreads, default=1.0) >= _VANISHED:
        return None  # a saturated output, for example: nothing vanished
    scaled = _scale(model, first)
    return Notice(
        "W_WEIGHTS_SCALED",
        f"the weights shrink values to a spread of {min(spreads):.0e}, so that outputs do not depend on inputs: those "
        f"of {scaled} layers were multiplied by powers of two, and all contestants race with these",
    )


def _moves(model: KerasModel, first: Arrays, second: Arrays) -> bool:
    """Whether an output differs between the inputs by more than rounding may move it."""
    pairs = zip(_answers(model, first), _answers(model, second), strict=True)
    return any(not np.linalg.norm(other - own) <= _MOVED * np.linalg.norm(own) for own, other in pairs)


def _answers(model: KerasModel, inputs: Arrays) -> list[np.ndarray]:
    return [np.asarray(each).astype(np.float64) for each in model(dict(inputs))]


def _spreads(model: KerasModel, inputs: Arrays) -> Sequence[float]:
    """Of the values after each layer with a kernel, before its activation."""
    found: list[float] = []
    with _watched(model, lambda _, spread: found.append(spread)):
        model(dict(inputs))
    return found


def _scale(model: KerasModel, inputs: Arrays) -> int:
    """Each layer at its first call, whose inputs come from layers that were scaled before. Returns how many were."""
    seen: set[int] = set()
    changed: set[int] = set()

    def scale(layer: Any, spread: float) -> None:
        if id(layer) in seen or not 0 < spread < math.inf:
            return
        seen.add(id(layer))
        factor = 2.0 ** -round(math.log2(spread))
        if factor != 1.0:
            changed.add(id(layer))
            kernel = _kernel(layer)
            kernel.assign(kernel.numpy() * np.float32(factor))

    with _watched(model, scale):
        model(dict(inputs))
    return len(changed)


@contextmanager
def _watched(model: KerasModel, look: _Look) -> Iterator[None]:
    """Show each layer with a kernel, and the spread of its values, before it is called."""
    layers = [each for each in model.model._flatten_layers() if _kernel(each) is not None]
    for layer in layers:
        layer.call = _watching(layer, layer.call, look)
    try:
        yield
    finally:
        for layer in layers:
            del layer.call


def _watching(layer: Any, own: Callable[..., Any], look: _Look) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        activation, layer.activation = layer.activation, None
        try:
            look(layer, float(np.std(np.asarray(own(*arguments, **named)))))
        finally:
            layer.activation = activation
        return own(*arguments, **named)

    return call


def _kernel(layer: Any) -> Any:
    """Find the array that a layer's values are proportional to before the bias and activation; None without one."""
    from keras import layers

    separable = (layers.SeparableConv1D, layers.SeparableConv2D)
    if isinstance(layer, separable):
        return layer.pointwise_kernel
    convolutions = (layers.Conv1D, layers.Conv2D, layers.Conv3D, layers.DepthwiseConv1D, layers.DepthwiseConv2D)
    transposed = (layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose)
    if isinstance(layer, (layers.Dense, layers.EinsumDense, *convolutions, *transposed)):
        return layer.kernel
    return None
