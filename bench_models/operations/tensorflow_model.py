"""Operations as TensorFlow modules.

Images are NHWC inside: TensorFlow has no other layout on a CPU. Recurrent layers are those of Keras, which takes
sequences first and steps second.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tensorflow as tf
from fairlap.models.arrays import Arrays
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Gru, Lstm, Recurrent
from fairlap.models.operations.operation import Operation


class Product(tf.Module):
    def __init__(self, gemm: Gemm, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.gemm = gemm
        self.variables_by_name = _variables(weights, dtype)

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        a, b = self.variables_by_name["a"], inputs["b"]
        turned = {"transpose_a": self.gemm.a_transposed, "transpose_b": self.gemm.b_transposed}
        return (tf.linalg.matmul(a, b, **turned),)


class Convolved(tf.Module):
    def __init__(self, convolution: Convolution, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        tall, wide = (convolution.pad_height,) * 2, (convolution.pad_width,) * 2
        self.strides = (convolution.stride_height, convolution.stride_width)
        self.padding: Any = ((0, 0), tall, wide, (0, 0)) if any(tall + wide) else "VALID"
        self.variables_by_name = _variables({"filters": weights["filters"].transpose(2, 3, 1, 0)}, dtype)

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        images = tf.transpose(inputs["images"], (0, 2, 3, 1))
        convolved = tf.nn.conv2d(images, self.variables_by_name["filters"], self.strides, self.padding)
        return (tf.transpose(convolved, (0, 3, 1, 2)),)


class Layer(tf.Module):
    def __init__(self, recurrent: Recurrent, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        os.environ["KERAS_BACKEND"] = "tensorflow"
        layers = tf.keras.layers
        # With a bias, which stays 0: without one Keras does not use cuDNN.
        wanted = {"return_sequences": True, "dtype": dtype.name}
        wanted |= {f"{part}_initializer": "zeros" for part in ("kernel", "recurrent", "bias")}
        if isinstance(recurrent, Lstm):
            self.layer = layers.LSTM(recurrent.hidden, unit_forget_bias=False, **wanted)
        elif isinstance(recurrent, Gru):
            self.layer = layers.GRU(recurrent.hidden, **wanted)
        else:
            self.layer = layers.SimpleRNN(recurrent.hidden, activation="relu", **wanted)
        self.layer.build((recurrent.sequences, recurrent.steps, recurrent.hidden))
        cell = self.layer.cell
        held = {"layer.weight_ih_l0": cell.kernel, "layer.weight_hh_l0": cell.recurrent_kernel}
        for name, variable in held.items():
            variable.assign(tf.cast(_keras_order(recurrent, weights[name]).T, dtype))
        self.variables_by_name = {name: variable.value for name, variable in held.items()}

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (tf.transpose(self.layer(tf.transpose(inputs["sequence"], (1, 0, 2))), (1, 0, 2)),)


class Lookup(tf.Module):
    def __init__(self, weights: Arrays, dtype: Any) -> None:
        super().__init__()
        self.variables_by_name = _variables(weights, dtype)

    def __call__(self, inputs: dict[str, Any]) -> tuple[Any]:
        return (tf.gather(self.variables_by_name["table"], inputs["numbers"]),)


class Implementation:
    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def build(self, weights: Arrays, dtype: Any) -> Any:
        operation = self._operation
        match operation:
            case Gemm():
                return Product(operation, weights, dtype)
            case Convolution():
                return Convolved(operation, weights, dtype)
            case Recurrent():
                return Layer(operation, weights, dtype)
            case Embedding():
                return Lookup(weights, dtype)
            case _:
                raise TypeError(operation)

    def canonical(self, _name: str, array: Any) -> Any:
        match self._operation:
            case Convolution():
                return array.transpose(3, 2, 0, 1)
            case Recurrent():
                return _keras_order(self._operation, array.T)
            case _:
                return array


def _variables(weights: Arrays, dtype: Any) -> dict[str, Any]:
    return {name: tf.Variable(tf.cast(np.ascontiguousarray(array), dtype)) for name, array in weights.items()}


def _keras_order(recurrent: Recurrent, weight: Any) -> Any:
    """Of the gates, or back: Keras has the update gate of a GRU before the reset gate."""
    if not isinstance(recurrent, Gru):
        return weight
    reset, update, new = np.split(weight, 3)
    return np.concatenate((update, reset, new))
