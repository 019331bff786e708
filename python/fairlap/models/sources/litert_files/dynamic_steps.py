"""Real numbers that LiteRT rounds to steps of eight bits before it multiplies them with weights in eight bits.

It finds the steps in each call, for each row of a matrix and for each image: around 0 as far as the largest number, or
from the least to the largest.
"""

from __future__ import annotations

import numpy as np

from fairlap.models.sources.litert_files.operation import Operation, whole_numbers

_INT8 = 3  # onnx.TensorProto.INT8


def in_dynamic_steps(op: Operation, value: str, axes: int) -> str:
    """Round the real numbers of each place of the first of these axes."""
    rest = op.hold(whole_numbers(range(1, axes)))
    scale, zero = (_from_least_to_largest if _is_asymmetric(op) else _around_zero)(op, value, rest)
    rounded = op.node("QuantizeLinear", [value, scale, zero], axis=0)
    return op.node("DequantizeLinear", [rounded, scale, zero], axis=0)


def _is_asymmetric(op: Operation) -> bool:
    if op.kind == "FULLY_CONNECTED":
        return bool(op.options.asymmetricQuantizeInputs)
    steps = op.steps(1)  # convolutions are by the scales of their weights
    return steps is not None and len(steps.scales) == op.result_shape[-1]


def _around_zero(op: Operation, value: str, rest: str) -> tuple[str, str]:
    largest = op.node("ReduceMax", [op.node("Abs", [value]), rest], keepdims=0)
    scale = _not_zero(op, op.node("Div", [largest, _number(op, 127)]))
    return scale, op.node("Cast", [op.node("Mul", [largest, _number(op, 0)])], to=_INT8)


def _from_least_to_largest(op: Operation, value: str, rest: str) -> tuple[str, str]:
    least = op.node("Min", [op.node("ReduceMin", [value, rest], keepdims=0), _number(op, 0)])
    largest = op.node("Max", [op.node("ReduceMax", [value, rest], keepdims=0), _number(op, 0)])
    scale = _not_zero(op, op.node("Div", [op.node("Sub", [largest, least]), _number(op, 255)]))
    zero = op.node("Sub", [_number(op, -128), op.node("Div", [least, scale])])
    zero = op.node("Clip", [op.node("Round", [zero]), _number(op, -128), _number(op, 127)])
    return scale, op.node("Cast", [zero], to=_INT8)


def _not_zero(op: Operation, scale: str) -> str:
    """Make it 1 where all values are 0."""
    return op.node("Where", [op.node("Equal", [scale, _number(op, 0)]), _number(op, 1), scale])


def _number(op: Operation, value: float) -> str:
    return op.hold(np.array(value, np.float32))
