"""Gradients of padded convolutions in TensorFlow, against the same in float64: in bfloat16 they add up in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fairlap.models.tensorflow_edges import with_edges
from machine_marks import needs_package

pytestmark = [pytest.mark.slow, needs_package("tensorflow")]

EDGES = ((0, 0), (1, 1), (1, 1), (0, 0))


@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_kernels_in_bfloat16_are_those_of_float64_but_for_one_rounding(stride: int) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(0)
    image = tf.cast(np.maximum(rng.standard_normal((4, 32, 32, 8)), 0), tf.bfloat16)
    kernel = tf.cast(rng.standard_normal((3, 3, 8, 8)), tf.bfloat16)

    def gradient(kind: Any) -> np.ndarray:
        with tf.GradientTape() as tape:
            own = tf.cast(kernel, kind)
            tape.watch(own)
            edged, padding = with_edges(tf.cast(image, kind), EDGES)
            answer = tf.reduce_mean(tf.nn.conv2d(edged, own, stride, padding))
        return np.asarray(tf.cast(tape.gradient(answer, own), tf.float64))

    true = gradient(tf.float64)
    assert np.linalg.norm(gradient(tf.bfloat16) - true) < 0.005 * np.linalg.norm(true)


def test_no_edges_are_no_work() -> None:
    import tensorflow as tf

    image = tf.zeros((1, 4, 4, 1))
    assert with_edges(image, ((0, 0),) * 4) == (image, "VALID")
