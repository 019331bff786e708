"""Operations as pure functions.

Filters are HWIO and images NHWC inside, as XLA prefers on a CPU; a recurrent layer multiplies all its inputs at once
and scans the steps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Gru, Lstm, Recurrent
from fairlap.models.operations.operation import Operation


class Implementation:
    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def params(self, weights: Arrays) -> dict[str, Any]:
        return {name: np.ascontiguousarray(self._turned(array)) for name, array in weights.items()}

    def canonical(self, params: dict[str, Any]) -> dict[str, Any]:
        back = (3, 2, 0, 1) if isinstance(self._operation, Convolution) else None
        return {name: array.transpose(back) if back else self._turned(array) for name, array in params.items()}

    def forward(self, params: dict[str, Any], inputs: dict[str, Any]) -> tuple[Any]:
        operation = self._operation
        match operation:
            case Gemm():
                a, b = params["a"], inputs["b"]
                return (jnp.matmul(a.T if operation.a_transposed else a, b.T if operation.b_transposed else b),)
            case Convolution():
                return (_convolved(operation, params["filters"], inputs["images"]),)
            case Recurrent():
                return (_states(operation, params, inputs["sequence"]),)
            case Embedding():
                return (jnp.take(params["table"], inputs["numbers"], axis=0),)
            case _:
                raise TypeError(operation)

    def _turned(self, array: Any) -> Any:
        match self._operation:
            case Convolution():
                return array.transpose(2, 3, 1, 0)
            case Recurrent():
                return array.T
            case _:
                return array


def _convolved(convolution: Convolution, filters: Any, images: Any) -> Any:
    convolved = jax.lax.conv_general_dilated(
        jnp.transpose(images, (0, 2, 3, 1)),
        filters,
        window_strides=(convolution.stride_height, convolution.stride_width),
        padding=((convolution.pad_height,) * 2, (convolution.pad_width,) * 2),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return jnp.transpose(convolved, (0, 3, 1, 2))


def _states(recurrent: Recurrent, params: dict[str, Any], sequence: Any) -> Any:
    of_inputs, of_state = sequence @ params["layer.weight_ih_l0"], params["layer.weight_hh_l0"]
    start = jnp.zeros(sequence.shape[1:], sequence.dtype)

    def rnn(state: Any, known: Any) -> tuple[Any, Any]:
        state = jax.nn.relu(known + state @ of_state)
        return state, state

    def lstm(carried: tuple[Any, Any], known: Any) -> tuple[tuple[Any, Any], Any]:
        state, cell = carried
        taken, kept, new, shown = jnp.split(known + state @ of_state, 4, axis=-1)
        cell = jax.nn.sigmoid(kept) * cell + jax.nn.sigmoid(taken) * jnp.tanh(new)
        state = jax.nn.sigmoid(shown) * jnp.tanh(cell)
        return (state, cell), state

    def gru(state: Any, known: Any) -> tuple[Any, Any]:
        reset, update, new = jnp.split(known, 3, axis=-1)
        reset_by, update_by, new_by = jnp.split(state @ of_state, 3, axis=-1)
        kept = jax.nn.sigmoid(update + update_by)
        state = (1 - kept) * jnp.tanh(new + jax.nn.sigmoid(reset + reset_by) * new_by) + kept * state
        return state, state

    if isinstance(recurrent, Lstm):
        return jax.lax.scan(lstm, (start, start), of_inputs)[1]
    return jax.lax.scan(gru if isinstance(recurrent, Gru) else rnn, start, of_inputs)[1]
