"""Operators that read or write at computed places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fairlap.models.onnx_import.operators.registry import Attributes, operator


def _why_not_padded(attributes: Attributes) -> str | None:
    return "its row of padding is not on the first axis" if "padding" in attributes and attributes.get("axis") else None


@operator("Gather", scalars={"place": 1}, refuse=_why_not_padded)
def gather(
    library: Any,
    value: Any,
    places: Any = None,
    *,
    axis: int = 0,
    place: int | None = None,
    padding: int | None = None,
) -> Any:
    """Look up rows; no gradient reaches the one at ``padding`` through this lookup, as in PyTorch's embeddings."""
    if place is not None:
        row = value[(slice(None),) * (axis % len(value.shape)) + (place,)]
        return library.without_gradient(row) if place == padding else row
    rows = library.gather(value, places, axis % len(value.shape))
    if padding is None:
        return rows
    padded = library.reshape(library.apply("Equal", places, padding), (*places.shape, *(1,) * (len(value.shape) - 1)))
    return library.where(padded, library.without_gradient(rows), rows)


def _from_start(library: Any, places: Any, size: int) -> Any:
    """Negative places count from the end."""
    return library.where(places < 0, places + size, places)


@operator("GatherElements")
def gather_elements(library: Any, value: Any, places: Any, *, axis: int = 0) -> Any:
    axis %= len(value.shape)
    places = _linear(library, _element_places(library, value.shape, places, axis), value.shape)
    return library.take_flat(value, places)


@operator("GatherND")
def gather_nd(library: Any, value: Any, places: Any, *, batch_dims: int = 0, sizes: Sequence[tuple[int, ...]]) -> Any:
    depth = places.shape[-1] + batch_dims
    lead = places.shape[:-1]
    columns = [_axis_places(library, lead, axis) for axis in range(batch_dims)]
    columns += [places[..., at] for at in range(places.shape[-1])]
    flat = _linear(library, columns, value.shape[:depth])
    rows = library.reshape(value, (-1, *value.shape[depth:]))
    return library.reshape(library.take_rows(rows, library.reshape(flat, (-1,))), sizes[0])


@operator("ScatterElements", "Scatter")
def scatter_elements(
    library: Any, value: Any, places: Any, updates: Any, *, axis: int = 0, reduction: str = "none"
) -> Any:
    columns = _element_places(library, value.shape, places, axis % len(value.shape))
    flat = library.reshape(_linear(library, columns, value.shape), (-1,))
    return _scatter(library, value, flat, updates, reduction)


@operator("ScatterND")
def scatter_nd(library: Any, value: Any, places: Any, updates: Any, *, reduction: str = "none") -> Any:
    depth = places.shape[-1]
    columns = [places[..., at] for at in range(depth)]
    flat = library.reshape(_linear(library, columns, value.shape[:depth]), (-1,))
    if depth == len(value.shape):
        return _scatter(library, value, flat, updates, reduction)
    inner = math.prod(value.shape[depth:])
    rows, new = library.reshape(value, (-1, inner)), library.reshape(updates, (-1, inner))
    return library.reshape(library.scatter_rows(rows, flat, new, reduction), tuple(value.shape))


def _scatter(library: Any, value: Any, flat: Any, updates: Any, reduction: str) -> Any:
    whole, new = library.reshape(value, (-1,)), library.reshape(updates, (-1,))
    return library.reshape(library.scatter(whole, flat, new, reduction), tuple(value.shape))


def _element_places(library: Any, shape: Sequence[int], places: Any, axis: int) -> list[Any]:
    lead = tuple(places.shape)
    return [places if at == axis else _axis_places(library, lead, at) for at in range(len(shape))]


def _axis_places(library: Any, shape: Sequence[int], axis: int) -> Any:
    """For every element of a shape its place along an axis."""
    line = library.arange(shape[axis])
    return library.reshape(line, tuple(-1 if at == axis else 1 for at in range(len(shape))))


def _linear(library: Any, columns: Sequence[Any], shape: Sequence[int]) -> Any:
    """One place in a flat array from one per axis."""
    total: Any = 0
    for column, size in zip(columns, shape, strict=True):
        column = _from_start(library, library.cast(column, "int64"), size)
        total = column if isinstance(total, int) else total * size + column
    return total


@operator("OneHot", operands={"depth": 1})
def one_hot(library: Any, places: Any, values: Any, *, depth: Any, axis: int = -1) -> Any:
    size = int(depth if isinstance(depth, (int, float)) else depth[0])
    rank = len(places.shape) + 1
    axis %= rank
    places = _from_start(library, library.cast(places, "int64"), size)
    line = library.reshape(library.arange(size), tuple(-1 if at == axis else 1 for at in range(rank)))
    wide = library.reshape(places, (*places.shape[:axis], 1, *places.shape[axis:]))
    return library.where(library.apply("Equal", wide, line), values[1], values[0])


@operator("ReverseSequence")
def reverse_sequence(library: Any, value: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    rank = len(value.shape)
    lengths = library.reshape(library.cast(lengths, "int64"), _along(batch_axis, rank))
    line = library.reshape(library.arange(value.shape[time_axis]), _along(time_axis, rank))
    turned = library.where(line < lengths, lengths - 1 - line, line)
    places = library.broadcast(turned, tuple(value.shape))
    return gather_elements(library, value, places, axis=time_axis)


def _along(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(-1 if at == axis else 1 for at in range(rank))


@operator("TensorScatter")
def tensor_scatter(
    library: Any, past: Any, update: Any, first: Any = None, *, axis: int = -2, mode: str = "linear"
) -> Any:
    """Write an update into a cache from a place on that each item of the batch has."""
    rank = len(past.shape)
    axis %= rank
    start = 0 if first is None else library.reshape(library.cast(first, "int64"), _along(0, rank))
    line = library.reshape(library.arange(update.shape[axis]), _along(axis, rank)) + start
    if mode == "circular":
        line = library.apply("FlooredModulo", line, library.full_like(line, past.shape[axis]))
    places = library.broadcast(line, tuple(update.shape))
    return scatter_elements(library, past, places, update, axis=axis)
