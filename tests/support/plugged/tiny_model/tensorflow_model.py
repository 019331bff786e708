"""The multiplication in TensorFlow, one of whose operations launches on the fake device.

It does so as TensorFlow's own do on a GPU: from within the runtime, in a thread that TensorFlow chooses.
"""

from __future__ import annotations

from typing import Any

import device_framework
import numpy as np
import tensorflow as tf
from fairlap.models.arrays import Arrays


class Multiplication:
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        self.variables_by_name = {"w": tf.Variable(tf.cast(weights["w"], dtype))}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        product = tf.linalg.matmul(inputs["x"], self.variables_by_name["w"])
        launched = tf.numpy_function(_launch, [product], product.dtype)
        return (tf.ensure_shape(launched, product.shape),)


def _launch(product: np.ndarray) -> np.ndarray:
    """With the context of its device current for as long as it launches, as TensorFlow has it."""
    cuda = device_framework.machine.cuda
    before = cuda.fake_cuda_current_context()
    cuda.fake_cuda_make_current(device_framework.context)
    for stream in device_framework.streams:
        device_framework.machine.kernel(device_framework.KERNEL_NS, "matmul", stream)
    cuda.fake_cuda_make_current(before)
    return product


def build(weights: Arrays, dtype: Any) -> Multiplication:
    return Multiplication(weights, dtype)


def canonical(_name: str, array: Any) -> Any:
    return array
