"""What each operator of LiteRT is in ONNX. Sizes are those that LiteRT found: all are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairlap.models.sources.litert_files.control_flow import CONTROL_FLOW
from fairlap.models.sources.litert_files.dynamic_steps import in_dynamic_steps
from fairlap.models.sources.litert_files.image_operators import IMAGE_OPERATORS
from fairlap.models.sources.litert_files.list_updates import SET_ROW, set_row
from fairlap.models.sources.litert_files.onnx_graph import Untranslated
from fairlap.models.sources.litert_files.operation import (
    LIMITS,
    ONE_VALUE,
    Operation,
    Translation,
    activated,
    elementwise,
    product_steps,
    reshaped,
    whole_numbers,
)
from fairlap.models.sources.litert_files.recurrent import RECURRENT, RECURRENT_READ

_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_TWO_VALUES = {
    "ADD": "Add", "DIV": "Div", "EQUAL": "Equal", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less", "LESS_EQUAL": "LessOrEqual", "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "MAXIMUM": "Max",
    "MINIMUM": "Min", "MUL": "Mul", "POW": "Pow", "SUB": "Sub",
}  # fmt: skip
_REDUCTIONS = {
    "MEAN": "ReduceMean", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin", "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}  # fmt: skip


def _of_one_value(op: Operation) -> str:
    return elementwise(op, op.kind, op.given(0))


def _of_two_values(op: Operation) -> str:
    return activated(op, op.node(_TWO_VALUES[op.kind], [op.given(0), op.given(1)]))


def _unchanged(op: Operation) -> str:
    """Real numbers of steps, or the other way round, which are made around every operator."""
    return op.given(0)


def _squared_difference(op: Operation) -> str:
    found = op.node("Sub", [op.given(0), op.given(1)])
    return op.node("Mul", [found, found])


def _fully_connected(op: Operation) -> str:
    if op.options.weightsFormat:
        raise Untranslated("FULLY_CONNECTED with shuffled weights")
    width = int(op.constant(1).shape[1])
    are_rows = len(op.shape(0)) == 2 and op.shape(0)[1] == width
    rows = op.given(0) if are_rows else op.given(0, shape=(-1, width))
    if op.steps(0) is None and op.is_in_steps(1):
        rows = in_dynamic_steps(op, rows, 2)
    found = op.node("Gemm", [rows, op.given(1), *op.bias(2, product_steps(op))], transB=1)
    found = activated(op, found)
    return found if are_rows and len(op.result_shape) == 2 else op.moved_result(found, shape=op.result_shape)


def _matrix_product(op: Operation) -> str:
    sides = []
    for place, turned in ((0, op.options.adjX), (1, op.options.adjY)):
        axes = list(range(len(op.shape(place))))
        sides.append(op.given(place, [*axes[:-2], axes[-1], axes[-2]] if turned else None))
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
    values = [op.hold(op.real_constant(2).reshape(()))] if op.has(2) else []
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


def _split(op: Operation) -> list[str]:
    """Into equal parts, or into parts of these sizes."""
    value, axis = (0, 2) if op.kind == "SPLIT_V" else (1, 0)
    at = int(op.constant(axis).reshape(())) % len(op.shape(value))
    return _parts(op, op.given(value), at, [op.shapes[each][at] for each in op.operator.results])


def _unstacked(op: Operation) -> list[str]:
    axis = int(op.options.axis) % len(op.shape(0))
    parts = _parts(op, op.given(0), axis, [1] * len(op.operator.results))
    return [reshaped(op, each, op.result_shape) for each in parts]


def _parts(op: Operation, value: str, axis: int, sizes: Sequence[int]) -> list[str]:
    made = [op.onnx.fresh() for _ in sizes]
    op.onnx.node("Split", [value, op.hold(whole_numbers(sizes))], made, axis=axis)
    return made


def _reversed(op: Operation) -> str:
    axes = [int(axis) % len(op.shape(0)) for axis in op.constant(1).reshape(-1)]
    places = [op.hold(whole_numbers([each] * len(axes))) for each in (_MOST, _LEAST, -1)]
    return op.node("Slice", [op.given(0), *places[:2], op.hold(whole_numbers(axes)), places[2]])


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
    return op.node(_REDUCTIONS[op.kind], [op.given(0), op.hold(whole_numbers(axes))], keepdims=keeps)


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
    op.constant(1)  # a slope that is computed has no translation
    return op.node("PRelu", [op.given(0), op.given(1)])


TRANSLATIONS: Mapping[str, Translation] = {
    **CONTROL_FLOW,
    **IMAGE_OPERATORS,
    **RECURRENT,
    SET_ROW: set_row,
    **dict.fromkeys((*ONE_VALUE, *LIMITS, "RSQRT", "SQUARE"), _of_one_value),
    **dict.fromkeys(_TWO_VALUES, _of_two_values),
    **dict.fromkeys(_REDUCTIONS, _reduced),
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _other_shape),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
    "BATCH_MATMUL": _matrix_product,
    "CAST": _cast,
    "CONCATENATION": _joined,
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": _gathered,
    "LEAKY_RELU": _leaky,
    "DEQUANTIZE": _unchanged,
    "PACK": _stacked,
    "PRELU": _prelu,
    "QUANTIZE": _unchanged,
    "REVERSE_V2": _reversed,
    "SELECT_V2": _chosen,
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUARED_DIFFERENCE": _squared_difference,
    "STRIDED_SLICE": _strided_slice,
    "TRANSPOSE": _transposed,
    "UNPACK": _unstacked,
}

# Of operators that read less than they are given: the other values are sizes, which are known.
READS: Mapping[str, Sequence[int]] = {
    **RECURRENT_READ,
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), (0,)),
    "SPLIT": (1,),
    "SPLIT_V": (0,),
    "TRANSPOSE_CONV": (1, 2, 3),
}
