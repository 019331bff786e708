"""The convolution as a TensorFlow module. Images are NHWC inside: TensorFlow has no other layout on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.models.arrays import Arrays


class Convolution(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        kernel = np.ascontiguousarray(weights["kernel"].transpose(2, 3, 1, 0))
        self.variables_by_name = {"kernel": tf.Variable(tf.cast(kernel, dtype))}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        image = tf.transpose(inputs["image"], (0, 2, 3, 1))
        # "SAME" is one pixel on every side here, since the kernel is odd and the stride is one.
        convolved = tf.nn.conv2d(image, self.variables_by_name["kernel"], 1, "SAME")
        return (tf.transpose(convolved, (0, 3, 1, 2)),)


def build(weights: Arrays, dtype: Any) -> Convolution:
    return Convolution(weights, dtype)


def canonical(name: str, array: Any) -> Any:
    return array.transpose(3, 2, 0, 1)
