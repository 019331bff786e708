"""Recurrences over the steps of a sequence: LSTM, GRU and the plain RNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.graph import Tensor
from fairlap.models.onnx_import.operators.quantization import dequantize, dynamic_quantize
from fairlap.models.onnx_import.operators.registry import Attributes, operator

DYNAMIC_STEPS = "dynamic_steps"  # not of ONNX: of an LSTM that was ONNX Runtime's DynamicQuantizeLSTM
_ACTIVATIONS = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")
_USUAL_OF_LSTM = ("Sigmoid", "Tanh", "Tanh")
_READS = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "input_forget")


def _resolve(
    attributes: Attributes, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], usual: Any
) -> Attributes:
    found = dict(attributes)
    direction = found.pop("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    names = tuple(found.pop("activations", ())) or usual * len(backwards)
    of_numbers = [found.pop(name, ()) for name in ("activation_alpha", "activation_beta")]
    if any(of_numbers) or any(name not in _ACTIVATIONS for name in names):
        raise NotImplementedError(f"the activations {', '.join(names)}")
    if found.pop("clip", 0) or found.pop("input_forget", 0):
        raise NotImplementedError("clip or input_forget")
    each = len(usual)
    by_direction = tuple(tuple(names[at * each : (at + 1) * each]) for at in range(len(backwards)))
    return {**found, "backwards": backwards, "activations": by_direction}


Step = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]


def _recur(
    library: Any,
    x: Any,
    weights: Sequence[Any],
    lengths: Any,
    starts: Sequence[Any],
    backwards: tuple[bool, ...],
    layout: int,
    projected: Callable[[Any, int], Any],
    step_of: Callable[[int], Step],
) -> tuple[Any, ...]:
    """Run every direction, and return all states of the first kind and the last ones of every kind."""
    if layout:
        x = library.transpose(x, (1, 0, 2))
        starts = [start if start is None else library.transpose(start, (1, 0, 2)) for start in starts]
    steps, batch = x.shape[:2]
    _require_within(lengths, steps)
    hidden = weights[1].shape[2]
    every, last = [], []
    for at, backward in enumerate(backwards):
        rows = projected(library.flip(x, (0,)) if backward else x, at)
        state = tuple(
            library.full_like(x[0, :, :1], 0) * library.full_like(weights[1][at, :1, :], 0)
            if start is None
            else start[at]
            for start in starts
        )
        step = step_of(at)
        if lengths is None:
            states = library.scan(step, state, rows)
        else:
            within = partial(_within, library, step, lengths, steps if backward else None)
            states = library.scan(within, (*state, library.arange(1)), rows)[:-1]
        seen = library.flip(states[0], (0,)) if backward else states[0]
        seen = seen if lengths is None else _cleared(library, seen, lengths)
        every.append(library.reshape(seen, (steps, 1, batch, hidden)))
        last.append([library.reshape(each[steps - 1], (1, batch, hidden)) for each in states])
    joined = [every[0] if len(every) == 1 else library.concat(every, 1)]
    joined += [kind[0] if len(kind) == 1 else library.concat(list(kind), 0) for kind in zip(*last, strict=True)]
    if layout:
        return library.transpose(joined[0], (2, 0, 1, 3)), *(library.transpose(each, (1, 0, 2)) for each in joined[1:])
    return tuple(joined)


def _require_within(lengths: Any, steps: int) -> None:
    """Refuse lengths that are no part of the sequence, where they are known: in the reference, which runs first."""
    if not isinstance(lengths, np.ndarray) or not lengths.size:
        return
    low, high = int(lengths.min()), int(lengths.max())
    if low < 0 or high > steps:
        wrong = f"lengths of sequences must be from 0 to {steps}, the steps that there are"
        got = low if low < 0 else high
        raise ModelFileInvalid(f"{wrong} (got {got}); give others with --inputs", code="E_SOURCE_INPUTS")


def _within(
    library: Any, step: Step, lengths: Any, backwards_from: int | None, state: tuple[Any, ...], row: Any
) -> tuple[Any, ...]:
    """Keep the state of a sequence outside of its length; the number of the step goes last."""
    *old, number = state
    place = number if backwards_from is None else number * -1 + (backwards_from - 1)
    goes_on = library.reshape(library.cast(lengths, library.dtype_of(number)) > place, (-1, 1))
    new = step(tuple(old), row)
    return (*(library.where(goes_on, one, other) for one, other in zip(new, old, strict=True)), number + 1)


def _cleared(library: Any, states: Any, lengths: Any) -> Any:
    numbers = library.reshape(library.arange(states.shape[0]), (-1, 1, 1))
    inside = library.reshape(library.cast(lengths, library.dtype_of(numbers)), (1, -1, 1)) > numbers
    return library.where(inside, states, library.full_like(states, 0))


def _turned(library: Any, matrix: Any) -> Any:
    return library.transpose(matrix, (1, 0))


def _plus(product: Any, bias: Any, at: int, *parts: slice) -> Any:
    return product if bias is None else sum((bias[at, part] for part in parts), product)


def _in_steps(library: Any, value: Any) -> Any:
    """Round to the steps that DynamicQuantizeLinear finds for it."""
    steps, scale, zero = dynamic_quantize(library, value)
    return dequantize(library, steps, scale, zero, dtype=library.dtype_of(value))


def _unchanged(value: Any) -> Any:
    return value


@operator("LSTM", resolve=partial(_resolve, usual=_USUAL_OF_LSTM), reads=_READS, folds=False)
def lstm(
    library: Any,
    x: Any,
    by_input: Any,
    by_state: Any,
    bias: Any = None,
    lengths: Any = None,
    start: Any = None,
    start_cell: Any = None,
    peepholes: Any = None,
    *,
    hidden_size: int = 0,
    layout: int = 0,
    dynamic_steps: int = 0,
    backwards: tuple[bool, ...] = (),
    activations: tuple[tuple[str, ...], ...] = (),
) -> Any:
    size = by_state.shape[2]
    usual = all(names == _USUAL_OF_LSTM for names in activations) and backwards in ((False,), (False, True))
    if usual and lengths is None and peepholes is None and not dynamic_steps and not layout:
        found = library.lstm(x, by_input, by_state, bias, start, start_cell)
        if found is not None:
            return found
    rounded: Callable[[Any], Any] = partial(_in_steps, library) if dynamic_steps else _unchanged

    def projected(rows: Any, at: int) -> Any:
        product = library.matmul(rounded(rows), _turned(library, by_input[at]))
        return _plus(product, bias, at, slice(4 * size), slice(4 * size, None))

    def step_of(at: int) -> Step:
        turned, (gate, inner, outer) = _turned(library, by_state[at]), activations[at]
        holes = (
            [0, 0, 0] if peepholes is None else [peepholes[at, part * size : (part + 1) * size] for part in range(3)]
        )

        def step(state: tuple[Any, ...], row: Any) -> tuple[Any, ...]:
            hidden, cell = state
            into, out, keep, new = library.split(row + library.matmul(rounded(hidden), turned), [size] * 4, 1)
            if peepholes is not None:
                into, keep = into + holes[0] * cell, keep + holes[2] * cell
            cell = library.apply(gate, keep) * cell + library.apply(gate, into) * library.apply(inner, new)
            out = out if peepholes is None else out + holes[1] * cell
            return library.apply(gate, out) * library.apply(outer, cell), cell

        return step

    return _recur(library, x, (by_input, by_state), lengths, (start, start_cell), backwards, layout, projected, step_of)


@operator("GRU", resolve=partial(_resolve, usual=("Sigmoid", "Tanh")), reads=_READS, folds=False)
def gru(
    library: Any,
    x: Any,
    by_input: Any,
    by_state: Any,
    bias: Any = None,
    lengths: Any = None,
    start: Any = None,
    *,
    hidden_size: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
    backwards: tuple[bool, ...] = (),
    activations: tuple[tuple[str, ...], ...] = (),
) -> Any:
    size = by_state.shape[2]

    def projected(rows: Any, at: int) -> Any:
        product = library.matmul(rows, _turned(library, by_input[at]))
        return _plus(product, bias, at, slice(3 * size))

    def step_of(at: int) -> Step:
        gates, new = _turned(library, by_state[at, : 2 * size]), _turned(library, by_state[at, 2 * size :])
        of_gates, of_new = (0, 0) if bias is None else (bias[at, 3 * size : 5 * size], bias[at, 5 * size :])
        gate, inner = activations[at]

        def step(state: tuple[Any, ...], row: Any) -> tuple[Any, ...]:
            (hidden,) = state
            row_keep, row_reset, row_new = library.split(row, [size] * 3, 1)
            keep, reset = library.split(library.matmul(hidden, gates) + of_gates, [size] * 2, 1)
            keep, reset = library.apply(gate, row_keep + keep), library.apply(gate, row_reset + reset)
            if linear_before_reset:
                proposed = reset * (library.matmul(hidden, new) + of_new)
            else:
                proposed = library.matmul(reset * hidden, new) + of_new
            return ((1 - keep) * library.apply(inner, row_new + proposed) + keep * hidden,)

        return step

    return _recur(library, x, (by_input, by_state), lengths, (start,), backwards, layout, projected, step_of)


@operator("RNN", resolve=partial(_resolve, usual=("Tanh",)), reads=_READS, folds=False)
def rnn(
    library: Any,
    x: Any,
    by_input: Any,
    by_state: Any,
    bias: Any = None,
    lengths: Any = None,
    start: Any = None,
    *,
    hidden_size: int = 0,
    layout: int = 0,
    backwards: tuple[bool, ...] = (),
    activations: tuple[tuple[str, ...], ...] = (),
) -> Any:
    size = by_state.shape[2]

    def projected(rows: Any, at: int) -> Any:
        product = library.matmul(rows, _turned(library, by_input[at]))
        return _plus(product, bias, at, slice(size), slice(size, None))

    def step_of(at: int) -> Step:
        turned, (activation,) = _turned(library, by_state[at]), activations[at]
        return lambda state, row: (library.apply(activation, row + library.matmul(state[0], turned)),)

    return _recur(library, x, (by_input, by_state), lengths, (start,), backwards, layout, projected, step_of)
