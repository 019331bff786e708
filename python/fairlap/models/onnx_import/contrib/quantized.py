"""ONNX Runtime's quantized operators: what they compute on real numbers, between two quantizations.

It multiplies the integers instead, which is the same but for the rounding of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.contrib.nodes import Expansion

_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")


def _real(to: Expansion, place: int, axis: int | None = None) -> str:
    """Make the input at this place real; its scale and zero point follow it."""
    operands = [to.input(place), to.input(place + 1), to.input(place + 2)]
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    return to.make("DequantizeLinear", [each for each in operands if each], **attributes)


def _in_steps(to: Expansion, real: str, scale: str, zero: str) -> None:
    to.make("QuantizeLinear", [real, scale, *([zero] if zero else [])], to.outputs[:1])


def _of_one(operator: str, names: Sequence[str] = ()) -> Callable[[Expansion], bool]:
    def expand(to: Expansion) -> bool:
        if to.attributes.get("channels_last"):
            return False
        attributes = {name: to.attributes[name] for name in names if name in to.attributes}
        result = to.make(operator, [_real(to, 0)], **attributes)
        _in_steps(to, result, to.input(3), to.input(4))
        return True

    return expand


def _of_two(operator: str) -> Callable[[Expansion], bool]:
    def expand(to: Expansion) -> bool:
        result = to.make(operator, [_real(to, 0), _real(to, 3)])
        _in_steps(to, result, to.input(6), to.input(7))
        return True

    return expand


def _softmax(to: Expansion) -> bool:
    axis = to.attributes.get("axis", -1)
    if to.attributes.get("opset", 13) < 13 and axis != -1:
        return False
    _in_steps(to, to.make("Softmax", [_real(to, 0)], axis=axis), to.input(3), to.input(4))
    return True


def _concat(to: Expansion) -> bool:
    parts = [_real(to, place) for place in range(2, len(to.inputs), 3)]
    _in_steps(to, to.make("Concat", parts, axis=to.attributes["axis"]), to.input(0), to.input(1))
    return True


def _gemm(to: Expansion) -> bool:
    """Its third operand has the step of the product, and no zero point."""
    turned = {name: to.attributes.get(name, 0) for name in ("transA", "transB")}
    columns = 0 if turned["transB"] else 1
    alpha = to.attributes.get("alpha", 1.0)
    result = to.make("Gemm", [_real(to, 0), _real(to, 3, columns)], alpha=alpha, **turned)
    if to.input(6):
        step = to.make("Mul", [to.make("Mul", [to.input(1), to.input(4)]), to.constant(np.array(alpha, np.float32))])
        real = to.make("Mul", [to.make("Cast", [to.input(6)], to=1), step])
        result = to.make("Add", [result, real])
    if to.input(7):
        _in_steps(to, result, to.input(7), to.input(8))
    else:
        to.make("Identity", [result], to.outputs[:1])
    return True


def _dynamic_matmul(to: Expansion) -> bool:
    steps, scale, zero = to.several("DynamicQuantizeLinear", [to.input(0)], 3)
    return _real_product(to, [steps, zero, scale], [to.input(1), to.input(3), to.input(2)], to.input(4))


def _matmul_to_float(to: Expansion) -> bool:
    left, right, left_scale, right_scale, left_zero, right_zero, bias = (to.input(place) for place in range(7))
    return _real_product(to, [left, left_zero, left_scale], [right, right_zero, right_scale], bias)


def _real_product(to: Expansion, left: list[str], right: list[str], bias: str) -> bool:
    product = to.make("MatMulInteger", [left[0], right[0], left[1], right[1]])
    real = to.make("Mul", [to.make("Cast", [product], to=1), to.make("Mul", [left[2], right[2]])])
    to.make("Add" if bias else "Identity", [real, *([bias] if bias else [])], to.outputs[:1])
    return True


def _lstm(to: Expansion) -> bool:
    """Its weights have their inputs first; the sequence and the states between steps are quantized as they come."""
    x, by_input, by_state, bias, lengths, start, start_cell, holes = (to.input(place) for place in range(8))
    real = []
    for weight, place in ((by_input, 8), (by_state, 10)):
        whole = to.make("DequantizeLinear", [weight, to.input(place), to.input(place + 1)], axis=0)
        real.append(to.make("Transpose", [whole], perm=[0, 2, 1]))
    to.make("LSTM", [x, *real, bias, lengths, start, start_cell, holes], to.outputs, dynamic_steps=1, **to.attributes)
    return True


def _standard(operator: str) -> Callable[[Expansion], bool]:
    def expand(to: Expansion) -> bool:
        attributes: dict[str, Any] = {name: to.attributes[name] for name in ("axis",) if name in to.attributes}
        to.make(operator, to.inputs, to.outputs, **attributes)
        return True

    return expand


QUANTIZED: Mapping[str, Callable[[Expansion], bool]] = {
    "DequantizeLinear": _standard("DequantizeLinear"),
    "DynamicQuantizeLSTM": _lstm,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _matmul_to_float,
    "QGemm": _gemm,
    "QLinearAdd": _of_two("Add"),
    "QLinearAveragePool": _of_one("AveragePool", _POOL),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _of_one("GlobalAveragePool"),
    "QLinearLeakyRelu": _of_one("LeakyRelu", ("alpha",)),
    "QLinearMul": _of_two("Mul"),
    "QLinearSigmoid": _of_one("Sigmoid"),
    "QLinearSoftmax": _softmax,
    "QuantizeLinear": _standard("QuantizeLinear"),
}
