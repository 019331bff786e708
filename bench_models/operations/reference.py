"""Operations in NumPy, in the precision of the inputs. All products are BLAS calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.models.arrays import Arrays
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Gru, Lstm, Recurrent
from fairlap.models.operations.operation import Operation

Array = npt.NDArray[Any]


class Implementation:
    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, Array]:
        operation = self._operation
        match operation:
            case Gemm():
                answer = _product(operation, weights["a"], inputs["b"])
            case Convolution():
                answer = np.stack([_convolved(operation, weights["filters"], image) for image in inputs["images"]])
            case Recurrent():
                answer = _states(operation, weights, inputs["sequence"])
            case Embedding():
                answer = weights["table"][inputs["numbers"]]
            case _:
                raise TypeError(operation)
        return {operation.output.name: answer}


def _product(gemm: Gemm, a: Array, b: Array) -> Array:
    product: Array = (a.T if gemm.a_transposed else a) @ (b.T if gemm.b_transposed else b)
    return product


def _convolved(convolution: Convolution, filters: Array, image: Array) -> Array:
    """One product for an image: filters as rows, what they see at each place as columns."""
    tall, wide = (convolution.pad_height,) * 2, (convolution.pad_width,) * 2
    padded = np.pad(image, ((0, 0), tall, wide))
    seen = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[2:], axis=(1, 2))
    seen = seen[:, :: convolution.stride_height, :: convolution.stride_width]
    columns = seen.transpose(0, 3, 4, 1, 2).reshape(convolution.seen, -1)
    convolved: Array = filters.reshape(len(filters), -1) @ columns
    return convolved.reshape(-1, convolution.height_after, convolution.width_after)


def _states(recurrent: Recurrent, weights: Arrays, sequence: Array) -> Array:
    of_inputs = sequence @ weights["layer.weight_ih_l0"].T
    of_state = np.ascontiguousarray(weights["layer.weight_hh_l0"].T)
    state = cell = np.zeros(sequence.shape[1:], sequence.dtype)
    states = np.empty(sequence.shape, sequence.dtype)
    for step, known in enumerate(of_inputs):
        before = state @ of_state
        if isinstance(recurrent, Lstm):
            taken, kept, new, shown = np.split(known + before, 4, axis=-1)
            cell = _sigmoid(kept) * cell + _sigmoid(taken) * np.tanh(new)
            state = _sigmoid(shown) * np.tanh(cell)
        elif isinstance(recurrent, Gru):
            (reset, update, new), (reset_by, update_by, new_by) = (
                np.split(each, 3, axis=-1) for each in (known, before)
            )
            kept = _sigmoid(update + update_by)
            state = (1 - kept) * np.tanh(new + _sigmoid(reset + reset_by) * new_by) + kept * state
        else:
            state = np.maximum(known + before, 0)
        states[step] = state
    return states


def _sigmoid(values: Array) -> Array:
    """Without overflow."""
    half: Array = 0.5 * (1 + np.tanh(0.5 * values))
    return half
