"""What each operator of LiteRT is in ONNX. Sizes are those that LiteRT found: all are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairlap.models.sources.litert_files.image_operators import IMAGE_OPERATORS
from fairlap.models.sources.litert_files.operation import (
    LIMITS,
    ONE_VALUE,
    Operation,
    Translation,
    Untranslated,
    activated,
    bias_of,
    elementwise,
    reshaped,
    whole_numbers,
)

_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_TWO_VALUES = {
    "ADD": "Add", "DIV": "Div", "EQUAL": "Equal", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less", "LESS_EQUAL": "LessOrEqual", "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "MAXIMUM": "Max",
    "MINIMUM": "Min", "MUL": "Mul", "POW": "Pow", "SUB": "Sub",
}  # fmt: skip
_REDUCTIONS = {"MEAN": "ReduceMean", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin", "REDUCE_PROD": "ReduceProd"}


def _of_one_value(op: Operation) -> str:
    return elementwise(op, op.kind, op.given(0))


def _of_two_values(op: Operation) -> str:
    return activated(op, op.node(_TWO_VALUES[op.kind], [op.given(0), op.given(1)]))


def _squared_difference(op: Operation) -> str:
    found = op.node("Sub", [op.given(0), op.given(1)])
    return op.node("Mul", [found, found])


def _fully_connected(op: Operation) -> str:
    if op.options.weightsFormat:
        raise Untranslated("FULLY_CONNECTED with shuffled weights")
    weight = op.constant(1)
    rows = reshaped(op, op.given(0), (-1, int(weight.shape[1])))
    found = op.node("Gemm", [rows, op.hold(weight, 1), *bias_of(op, 2)], transB=1)
    return reshaped(op, activated(op, found), op.result_shape)


def _matrix_product(op: Operation) -> str:
    sides = []
    for place, turned in ((0, op.options.adjX), (1, op.options.adjY)):
        axes = list(range(len(op.shape(place))))
        value = op.given(place)
        sides.append(op.node("Transpose", [value], perm=[*axes[:-2], axes[-1], axes[-2]]) if turned else value)
    return op.node("MatMul", sides)


def _softmax(op: Operation) -> str:
    value, beta = op.given(0), float(op.options.beta)
    if beta != 1:
        value = op.node("Mul", [value, op.hold(np.array(beta, np.float32))])
    return op.node("Softmax", [value], axis=-1)


def _other_shape(op: Operation) -> str:
    return reshaped(op, op.given(0), op.result_shape)


def _pad(op: Operation) -> str:
    ends = op.hold(op.constant(1).astype(np.int64).T.reshape(-1))  # all first ends, then all last ones
    if op.kind == "MIRROR_PAD":
        if op.options.mode:
            raise Untranslated("MIRROR_PAD that repeats the edge")
        return op.node("Pad", [op.given(0), ends], mode="reflect")
    values = [op.hold(op.constant(2).reshape(()))] if op.has(2) else []
    return op.node("Pad", [op.given(0), ends, *values])


def _joined(op: Operation) -> str:
    inputs = [op.given(place) for place in range(len(op.inputs))]
    return activated(op, op.node("Concat", inputs, axis=int(op.options.axis)))


def _stacked(op: Operation) -> str:
    axis = int(op.options.axis) % len(op.result_shape)
    inputs = []
    for place in range(len(op.inputs)):
        shape = op.shape(place)
        inputs.append(reshaped(op, op.given(place), [*shape[:axis], 1, *shape[axis:]]))
    return op.node("Concat", inputs, axis=axis)


def _strided_slice(op: Operation) -> str:
    options = op.options
    if options.ellipsisMask or options.newAxisMask or options.offset:
        raise Untranslated("STRIDED_SLICE with new axes, an ellipsis or offsets")
    first, end, steps = (op.constant(place).astype(np.int64).tolist() for place in (1, 2, 3))
    for axis, step in enumerate(steps):
        bit = 1 << axis
        if options.shrinkAxisMask & bit:
            end[axis] = first[axis] + 1 if first[axis] != -1 else _MOST
            continue
        if options.beginMask & bit:
            first[axis] = 0 if step > 0 else _MOST
        if options.endMask & bit:
            end[axis] = _MOST if step > 0 else _LEAST
    places = [op.hold(whole_numbers(each)) for each in (first, end, range(len(steps)), steps)]
    return reshaped(op, op.node("Slice", [op.given(0), *places]), op.result_shape)


def _slice(op: Operation) -> str:
    first, sizes = (op.constant(place).astype(np.int64).tolist() for place in (1, 2))
    end = [_MOST if size < 0 else begin + size for begin, size in zip(first, sizes, strict=True)]
    return op.node("Slice", [op.given(0), *(op.hold(whole_numbers(each)) for each in (first, end))])


def _transposed(op: Operation) -> str:
    return op.node("Transpose", [op.given(0)], perm=op.constant(1).reshape(-1).tolist())


def _reduced(op: Operation) -> str:
    axes, keeps = op.constant(1).reshape(-1).tolist(), int(bool(op.options.keepDims))
    if op.kind == "SUM":
        return op.node("ReduceSum", [op.given(0), op.hold(whole_numbers(axes))], keepdims=keeps)
    return op.node(_REDUCTIONS[op.kind], [op.given(0)], axes=axes, keepdims=keeps)


def _gathered(op: Operation) -> str:
    if op.options.batchDims:
        raise Untranslated("GATHER of batches")
    return op.node("Gather", [op.given(0), op.given(1)], axis=int(op.options.axis))


def _chosen(op: Operation) -> str:
    return op.node("Where", [op.given(place) for place in range(3)])


def _cast(op: Operation) -> str:
    from onnx import helper

    return op.node("Cast", [op.given(0)], to=int(helper.np_dtype_to_tensor_dtype(np.dtype(op.result_type))))


def _leaky(op: Operation) -> str:
    return op.node("LeakyRelu", [op.given(0)], alpha=float(op.options.alpha))


def _prelu(op: Operation) -> str:
    return op.node("PRelu", [op.given(0), op.hold(op.constant(1), 1)])


TRANSLATIONS: Mapping[str, Translation] = {
    **IMAGE_OPERATORS,
    **dict.fromkeys((*ONE_VALUE, *LIMITS, "RSQRT", "SQUARE"), _of_one_value),
    **dict.fromkeys(_TWO_VALUES, _of_two_values),
    **dict.fromkeys((*_REDUCTIONS, "SUM"), _reduced),
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _other_shape),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
    "BATCH_MATMUL": _matrix_product,
    "CAST": _cast,
    "CONCATENATION": _joined,
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": _gathered,
    "LEAKY_RELU": _leaky,
    "PACK": _stacked,
    "PRELU": _prelu,
    "SELECT_V2": _chosen,
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SQUARED_DIFFERENCE": _squared_difference,
    "STRIDED_SLICE": _strided_slice,
    "TRANSPOSE": _transposed,
}

# Of operators that read less than they are given: the other values are sizes, which are known.
READS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), (0,)),
    "TRANSPOSE_CONV": (1, 2, 3),
}
