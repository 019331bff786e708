"""Operators that change shapes. Sizes are known when building, so a shape is never computed by the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.operators.reductions import renumber_axis
from fairlap.models.onnx_import.operators.registry import Attributes, operator

Sizes = Sequence[tuple[int, ...]]


@operator("Reshape", operands={"shape": 1})
def reshape(library: Any, value: Any, *, shape: Any = None, allowzero: int = 0, sizes: Sizes) -> Any:
    return library.reshape(value, sizes[0])


@operator("Flatten")
def flatten(library: Any, value: Any, *, axis: int = 1, sizes: Sizes) -> Any:
    return library.reshape(value, sizes[0])


@operator("Squeeze", "Unsqueeze", operands={"axes": 1})
def squeeze(library: Any, value: Any, *, axes: Any = None, sizes: Sizes) -> Any:
    return library.reshape(value, sizes[0])


@operator("Expand", operands={"shape": 1})
def expand(library: Any, value: Any, *, shape: Any = None, sizes: Sizes) -> Any:
    return library.broadcast(value, sizes[0])


def _renumber_transpose(attributes: Attributes, order: Sequence[int]) -> Attributes:
    perm = attributes.get("perm") or tuple(reversed(range(len(order))))
    return {**attributes, "perm": tuple(order.index(axis) for axis in perm), "from_last": True}


@operator("Transpose")
def transpose(library: Any, value: Any, *, perm: Sequence[int] | None = None) -> Any:
    chosen = tuple(perm) if perm is not None else tuple(reversed(range(len(value.shape))))
    return value if chosen == tuple(range(len(chosen))) else library.transpose(value, chosen)


@operator("Concat", layout="axes", renumber=lambda attributes, order: renumber_axis(attributes, order, 0))
def concat(library: Any, *values: Any, axis: int) -> Any:
    return library.concat(values, axis % len(values[0].shape))


@operator("Split", operands={"split": 1}, layout="axes", renumber=lambda a, order: renumber_axis(a, order, 0))
def split(
    library: Any, value: Any, *, split: Any = None, axis: int = 0, num_outputs: int = 0, sizes: Sizes, count: int
) -> Any:
    if count == 1:
        return value
    axis %= len(value.shape)
    if split is None:  # equal parts, the last one smaller
        whole = value.shape[axis]
        part = -(-whole // count)
        split = tuple(max(0, min(part, whole - at * part)) for at in range(count))
    return tuple(library.split(value, split, axis))


@operator("Tile", operands={"repeats": 1})
def tile(library: Any, value: Any, *, repeats: Sequence[int]) -> Any:
    return library.tile(value, tuple(repeats))


@operator("Slice", operands={"starts": 1, "ends": 2, "axes": 3, "steps": 4})
def slice_(library: Any, value: Any, *, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    rank = len(value.shape)
    axes = range(len(starts)) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    kept, flipped = [slice(None)] * rank, []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= rank
        chosen = range(
            *slice(start, end if step > 0 or end >= -value.shape[axis] else None, step).indices(value.shape[axis])
        )
        if step > 0:
            kept[axis] = slice(chosen.start, max(chosen.stop, chosen.start), step)
            continue
        flipped.append(axis)  # the same elements counted upwards, then turned around
        kept[axis] = slice(chosen[-1], chosen[0] + 1, -step) if len(chosen) else slice(0, 0)
    result = value[tuple(kept)]
    return library.flip(result, tuple(flipped)) if flipped else result


@operator("Shape")
def shape(library: Any, value: Any, *, start: int = 0, end: int | None = None) -> Any:
    return library.constant(np.array(value.shape[start:end], np.int64))


@operator("Size")
def size(library: Any, value: Any) -> Any:
    return library.constant(np.array(np.prod(value.shape), np.int64))


@operator("ConstantOfShape", operands={"shape": 0})
def constant_of_shape(library: Any, *, shape: Any, value: Any = None) -> Any:
    filled = np.zeros(1, np.float32) if value is None else value
    return library.constant(np.full(shape, filled.reshape(()), filled.dtype))


@operator("Range", operands={"start": 0, "limit": 1, "delta": 2})
def range_(library: Any, *, start: Any, limit: Any, delta: Any, dtype: str) -> Any:
    first, end, step = (np.asarray(each).reshape(()).item() for each in (start, limit, delta))  # or arrays of one
    return library.constant(np.arange(first, end, step).astype(dtype))


@operator("EyeLike")
def eye_like(library: Any, value: Any, *, k: int = 0, dtype: str) -> Any:
    rows, columns = library.arange(value.shape[0]), library.arange(value.shape[1])
    on = library.apply("Equal", library.reshape(rows, (-1, 1)) + k, library.reshape(columns, (1, -1)))
    return library.cast(on, dtype)


@operator("Trilu", operands={"k": 1})
def trilu(library: Any, value: Any, *, k: int = 0, upper: int = 1) -> Any:
    rows = library.reshape(library.arange(value.shape[-2]), (-1, 1)) + k
    columns = library.reshape(library.arange(value.shape[-1]), (1, -1))
    return library.where(rows <= columns if upper else rows >= columns, value, library.full_like(value, 0))


def _renumber_pad(attributes: Attributes, order: Sequence[int]) -> Attributes:
    axes = attributes.get("axes")
    axes = range(len(order)) if axes is None else axes
    return {**attributes, "axes": tuple(order.index(axis % len(order)) for axis in axes)}


@operator("Pad", operands={"pads": 1, "constant": 2, "axes": 3}, layout="axes", renumber=_renumber_pad)
def pad(
    library: Any,
    value: Any,
    *,
    pads: Sequence[int],
    axes: Any = None,
    mode: str = "constant",
    constant: Any = 0,
) -> Any:
    """Pad each edge; a negative padding removes."""
    constant = constant[0] if isinstance(constant, tuple) else constant
    rank = len(value.shape)
    chosen = range(rank) if axes is None else [axis % rank for axis in axes]
    edges = {axis: (pads[at], pads[at + len(chosen)]) for at, axis in enumerate(chosen)}
    if any(edge < 0 for pair in edges.values() for edge in pair):
        kept = [
            slice(max(0, -low), value.shape[axis] + min(0, high))
            for axis, (low, high) in ((axis, edges.get(axis, (0, 0))) for axis in range(rank))
        ]
        value = value[tuple(kept)]
    around = [tuple(max(0, edge) for edge in edges.get(axis, (0, 0))) for axis in range(rank)]
    if mode == "constant":
        return library.pad(value, around, constant)
    for axis, (low, high) in enumerate(around):
        if low or high:
            value = library.take(value, _outside(mode, value.shape[axis], low, high), axis)
    return value


def _outside(mode: str, size: int, low: int, high: int) -> list[int]:
    places = range(-low, size + high)
    if mode == "edge":
        return [min(max(place, 0), size - 1) for place in places]
    if mode == "wrap":
        return [place % size for place in places]
    period = max(1, 2 * (size - 1))
    return [min(place % period, period - place % period) for place in places]


@operator("DepthToSpace")
def depth_to_space(library: Any, value: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    batch, channels, height, width = value.shape
    left = channels // blocksize**2
    if mode == "DCR":
        parts = library.reshape(value, (batch, blocksize, blocksize, left, height, width))
        turned = library.transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = library.reshape(value, (batch, left, blocksize, blocksize, height, width))
        turned = library.transpose(parts, (0, 1, 4, 2, 5, 3))
    return library.reshape(turned, (batch, left, height * blocksize, width * blocksize))


@operator("SpaceToDepth")
def space_to_depth(library: Any, value: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    batch, channels, height, width = value.shape
    rows, columns = height // blocksize, width // blocksize
    parts = library.reshape(value, (batch, channels, rows, blocksize, columns, blocksize))
    turned = library.transpose(parts, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return library.reshape(turned, (batch, channels * blocksize**2, rows, columns))
