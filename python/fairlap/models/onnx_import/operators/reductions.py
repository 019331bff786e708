"""Operators that reduce, order or accumulate along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fairlap.models.onnx_import.operators.registry import Attributes, operator

_AXES = {"axes": 1}


def renumber_reduction(attributes: Attributes, order: Sequence[int]) -> Attributes | None:
    """Describe the same reduction for axes in another order; None if its result would be in that order too."""
    rank = len(order)
    axes = attributes.get("axes")
    axes = [axis % rank for axis in ([axes] if isinstance(axes, int) else axes or [])]
    if attributes.get("keepdims", 1):
        return {**attributes, "axes": tuple(order.index(axis) for axis in axes)} if axes else attributes
    kept = [axis for axis in order if axis not in axes]
    if axes and kept == sorted(kept):
        return {**attributes, "axes": tuple(order.index(axis) for axis in axes)}
    return None


def renumber_axis(attributes: Attributes, order: Sequence[int], default: int) -> Attributes:
    return {**attributes, "axis": order.index(attributes.get("axis", default) % len(order))}


def _axes(value: Any, axes: Any, noop: int) -> tuple[int, ...] | None:
    """None where nothing is to be reduced."""
    chosen = (axes,) if isinstance(axes, int) else tuple(axes or ())
    if not chosen:
        return None if noop else tuple(range(len(value.shape)))
    return tuple(axis % len(value.shape) for axis in chosen)


def _enter(name: str, kind: str, before: Any = None, after: Any = None) -> None:
    def compute(library: Any, value: Any, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        chosen = _axes(value, axes, noop_with_empty_axes)
        if before is not None:
            value = before(library, value)
        if chosen is not None and chosen != ():
            value = library.reduce(kind, value, chosen, bool(keepdims))
        return after(library, value) if after is not None else value

    operator(name, operands=_AXES, layout="axes", renumber=renumber_reduction)(compute)  # type: ignore[arg-type]


def _square(library: Any, value: Any) -> Any:
    return value * value


_enter("ReduceSum", "sum")
_enter("ReduceMean", "mean")
_enter("ReduceMax", "max")
_enter("ReduceMin", "min")
_enter("ReduceProd", "prod")
_enter("ReduceSumSquare", "sum", _square)
_enter("ReduceL1", "sum", lambda library, value: library.apply("Abs", value))
_enter("ReduceL2", "sum", _square, lambda library, value: library.floating("Sqrt", value))
_enter("ReduceLogSum", "sum", None, lambda library, value: library.floating("Log", value))


@operator("ReduceLogSumExp", operands=_AXES, layout="axes", renumber=renumber_reduction)  # type: ignore[arg-type]
def reduce_log_sum_exp(
    library: Any, value: Any, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    chosen = _axes(value, axes, noop_with_empty_axes)
    if not chosen:
        return value
    return library.log_sum_exp(value, chosen, bool(keepdims))


def _enter_argument(name: str, largest: bool) -> None:
    @operator(name)
    def compute(library: Any, value: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis %= len(value.shape)
        if select_last_index:
            found = library.argument(library.flip(value, (axis,)), axis, largest)
            found = found * -1 + (value.shape[axis] - 1)
        else:
            found = library.argument(value, axis, largest)
        if not keepdims:
            return found
        return library.reshape(found, (*value.shape[:axis], 1, *value.shape[axis + 1 :]))


_enter_argument("ArgMax", True)
_enter_argument("ArgMin", False)


def _enter_accumulation(name: str, kind: str, start: int) -> None:
    @operator(name, operands={"axis": 1})
    def compute(library: Any, value: Any, *, axis: Any, exclusive: int = 0, reverse: int = 0) -> Any:
        axis = (axis if isinstance(axis, int) else axis[0]) % len(value.shape)
        if reverse:
            value = library.flip(value, (axis,))
        result = library.accumulate(kind, value, axis)
        if exclusive:
            pads = [(1 if at == axis else 0, 0) for at in range(len(value.shape))]
            kept = [slice(None)] * len(value.shape)
            kept[axis] = slice(0, value.shape[axis])
            result = library.pad(result, pads, start)[tuple(kept)]
        return library.flip(result, (axis,)) if reverse else result


_enter_accumulation("CumSum", "sum", 0)
_enter_accumulation("CumProd", "prod", 1)


@operator("TopK", operands={"k": 1}, reads=("sorted",))
def top_k(library: Any, value: Any, *, k: Any, axis: int = -1, largest: int = 1) -> Any:
    wanted = k if isinstance(k, int) else k[0]
    return library.top_k(value, wanted, axis % len(value.shape), bool(largest))


def _renumber_last(attributes: Attributes, order: Sequence[int]) -> Attributes | None:
    return renumber_axis(attributes, order, -1) if attributes["opset"] >= 13 else None


def _enter_softmax(name: str, compute: Callable[[Any, Any, int], Any]) -> None:
    @operator(name, layout="axes", renumber=_renumber_last)  # type: ignore[arg-type]
    def whole(library: Any, value: Any, *, axis: int | None = None, opset: int) -> Any:
        """Before opset 13 all axes from one on count as one."""
        rank = len(value.shape)
        if opset >= 13:
            return compute(library, value, (-1 if axis is None else axis) % rank)
        axis = (1 if axis is None else axis) % rank
        flat = library.reshape(value, (math.prod(value.shape[:axis]), math.prod(value.shape[axis:])))
        return library.reshape(compute(library, flat, 1), tuple(value.shape))


def _hardmax(library: Any, value: Any, axis: int) -> Any:
    found = library.argument(value, axis, True)
    found = library.reshape(found, (*value.shape[:axis], 1, *value.shape[axis + 1 :]))
    places = library.arange(value.shape[axis])
    places = library.reshape(places, tuple(-1 if at == axis else 1 for at in range(len(value.shape))))
    return library.cast(library.apply("Equal", found, places), library.dtype_of(value))


_enter_softmax("Softmax", lambda library, value, axis: library.softmax(value, axis))
_enter_softmax("LogSoftmax", lambda library, value, axis: library.log_softmax(value, axis))
_enter_softmax("Hardmax", _hardmax)


@operator("LpNormalization")
def lp_normalization(library: Any, value: Any, *, axis: int = -1, p: int = 2) -> Any:
    axes = (axis % len(value.shape),)
    if p == 1:
        norm = library.reduce("sum", library.apply("Abs", value), axes, True)
    else:
        norm = library.apply("Sqrt", library.reduce("sum", value * value, axes, True))
    zero = library.apply("Equal", norm, library.full_like(norm, 0))
    return library.where(zero, value * 0, value / library.where(zero, library.full_like(norm, 1), norm))


@operator("Det")
def determinant(library: Any, value: Any) -> Any:
    return library.determinant(value)
