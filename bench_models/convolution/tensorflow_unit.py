"""Units in TensorFlow. Images are NHWC, kernels HWIO and depthwise kernels (height, width, channels, 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.bench_models.convolution.units import EPSILON, MOMENTUM, STATISTICS, Unit
from fairlap.models.arrays import Arrays
from fairlap.models.tensorflow_edges import with_edges


def variables(weights: Arrays, dtype: Any, dense: tuple[str, ...] = ()) -> dict[str, Any]:
    """``dense`` are kernels for images of one channel, which have the shape of depthwise ones."""
    return {
        name: tf.Variable(
            tf.cast(np.ascontiguousarray(array.transpose(_AXES_IN["4" if name in dense else _kind(array)])), dtype),
            trainable=not name.endswith(STATISTICS),
        )
        for name, array in weights.items()
    }


def to_spec_layout(array: Any) -> Any:
    kind = "depthwise" if array.ndim == 4 and array.shape[3] == 1 else str(array.ndim)
    return array.transpose(_AXES_OUT[kind])


def apply_unit(weights: dict[str, Any], unit: Unit, image: Any, training: bool = False) -> Any:
    """In training, normalised by the batch, which also moves the running averages."""
    kernel = weights[f"{unit.convolution}.weight"]
    # TensorFlow's own "SAME" pads a stride of two on one side only.
    edge = (unit.padding, unit.padding)
    edges = ((0, 0), edge, edge, (0, 0))
    strides = [1, unit.stride, unit.stride, 1]
    is_depthwise = unit.groups > 1
    # A depthwise convolution is quicker with explicit padding, but for its gradients.
    image, padding = (image, edges) if is_depthwise and not training else with_edges(image, edges)
    convolved = (tf.nn.depthwise_conv2d if is_depthwise else tf.nn.conv2d)(image, kernel, strides, padding)
    scale, shift, mean, variance = (
        tf.cast(weights[f"{unit.normalisation}.{part}"], tf.float32)  # the fused operation wants float32 here
        for part in ("weight", "bias", *STATISTICS)
    )
    if training:
        normalised, batch_mean, batch_variance = tf.compat.v1.nn.fused_batch_norm(
            convolved, scale, shift, epsilon=EPSILON, is_training=True
        )
        for part, value in zip(STATISTICS, (batch_mean, batch_variance), strict=True):
            average = weights[f"{unit.normalisation}.{part}"]
            average.assign((1 - MOMENTUM) * average + MOMENTUM * tf.cast(value, average.dtype))
        return normalised
    normalised, _, _ = tf.compat.v1.nn.fused_batch_norm(
        convolved, scale, shift, mean, variance, epsilon=EPSILON, is_training=False
    )
    return normalised


def _kind(array: Any) -> str:
    return "depthwise" if array.ndim == 4 and array.shape[1] == 1 else str(array.ndim)


_AXES_IN = {"depthwise": (2, 3, 0, 1), "4": (2, 3, 1, 0), "2": (1, 0), "1": (0,)}
_AXES_OUT = {"depthwise": (2, 3, 0, 1), "4": (3, 2, 0, 1), "2": (1, 0), "1": (0,)}
