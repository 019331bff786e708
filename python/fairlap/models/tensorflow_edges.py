"""Zeros around images in TensorFlow: how a convolution is given them decides how fast its gradients are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Edges = Sequence[tuple[int, int]]
"""Before and after each axis."""


def with_edges(image: Any, edges: Edges) -> tuple[Any, Any]:
    """Return the image and the padding that a convolution takes.

    On a CPU, gradients of a convolution with explicit padding take 1.1 to 1.4 times as long in float32, and up to 28
    times in bfloat16, where they also add up in it. So zeros are put around the image before, as Keras' own networks
    do. Inference is as fast either way, but for depthwise convolutions. A GPU takes explicit padding as it is, and
    would copy the image.
    """
    import tensorflow as tf

    if not any(edge for pair in edges for edge in pair):
        return image, "VALID"
    if tf.config.list_logical_devices("GPU"):
        return image, [list(pair) for pair in edges]
    return tf.pad(image, [list(pair) for pair in edges]), "VALID"
