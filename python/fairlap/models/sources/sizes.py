"""Bind the sizes of inputs in files that have no names for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.models.onnx_import.dimensions import MOST_ELEMENTS
from fairlap.models.onnx_import.errors import DimensionsUnbound
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.exports.matching import shapes_like
from fairlap.models.sources.given_data.sets import Sets
from fairlap.models.sources.inputs import shapes_of
from fairlap.models.spec import Dtype, Fill, Integers, Normal, Uniform
from fairlap.request.fields.source import Source
from fairlap.suggestions import with_hint

Declared = Mapping[str, tuple[int | None, ...]]
Shapes = dict[str, tuple[int, ...]]
_EXAMPLE = 128  # of a size that is not the first


@dataclass(frozen=True)
class Bounds:
    """What is known of the values of an input of integers: from ``low`` to ``high``, exclusive.

    Where they are ``required``, it indexes a table of so many rows, or counts the steps of a sequence.
    """

    low: int
    high: int
    required: bool = False


def given_shapes(sets: Sets, declared: Declared, source: Source) -> Shapes:
    """Of the inputs that the user gives; of a further file of a model, those of the first file."""
    return shapes_like(declared, source.like) if source.like else shapes_of(sets, list(declared), source)


def bound_shapes(declared: Declared, source: Source, given: Mapping[str, tuple[int, ...]]) -> Shapes:
    """Of every input. What is asked for goes before the shapes of the ``given`` inputs, and a batch before those."""
    if not declared:
        raise SourceError("the model has no inputs, so nothing could show that it computes", code="E_SOURCE_INPUTS")
    if source.dims and not source.among_others:
        raise DimensionsUnbound(f"{source.text} has no names for its dimensions; bind them with --shapes or --batch")
    asked = dict(source.shapes)
    if unknown := [name for name in asked if name not in declared]:
        wrong = f"no input is named {', '.join(unknown)}; the inputs are {', '.join(declared)}"
        raise DimensionsUnbound(with_hint(wrong, unknown[0], declared))
    bound: Shapes = {}
    unbound, examples = [], []
    for name, sizes in declared.items():
        found = asked.get(name) or _with_batch(name, sizes, source.batch)
        if None in found and name in given:
            found = given[name]
        if len(found) != len(sizes) or any(old not in (None, new) for old, new in zip(sizes, found, strict=True)):
            where = "--shapes" if name in asked else source.inputs or "the inputs given"
            what = f"input {name!r} has the shape {_text(sizes)} in the model, and {_text(found)} in {where}"
            raise DimensionsUnbound(what)
        whole = tuple(size for size in found if size is not None)
        if len(whole) < len(found):
            unbound.append(f"{name}: bind {_text(found)}")
            example = (size or (_EXAMPLE if place else 1) for place, size in enumerate(found))
            examples.append(f"{name}:{'x'.join(map(str, example))}")
        elif math.prod(whole) > MOST_ELEMENTS:
            raise DimensionsUnbound(f"input {name!r} of shape {_text(whole)} is too large")
        bound[name] = whole
    if unbound:
        shapes = f"--shapes {','.join(examples)}"
        what = f"some dimensions have no size; give all that the model takes, in the form {shapes}, or a --batch"
        raise DimensionsUnbound("; ".join([what, *unbound]))
    return bound


def rows(count: int | None) -> Bounds | None:
    """Of an input that indexes a table of so many rows; None where it indexes none."""
    return None if count is None else Bounds(0, count, required=True)


def fill_of(name: str, dtype: Dtype, bounds: Bounds | None, source: Source, largest: int | None = None) -> Fill:
    """Choose what may be drawn for an input: as asked for, or as it is known, or as large as the given values."""
    for own, low, high in source.ranges:
        if own == name:
            return Uniform(low, high) if dtype.startswith("float") else _asked_range(name, low, high, bounds)
    if dtype.startswith("float"):
        return Normal(1.0)
    if bounds is not None:
        return Integers(bounds.low, bounds.high, bounds.required)
    return Integers(0, max(2, 1 + (largest or 0)), required=False)


def _asked_range(name: str, low: float, high: float, bounds: Bounds | None) -> Integers:
    """Both ends included. Indices outside of the table that they index are refused."""
    if low % 1 or high % 1:
        raise SourceError(f"{name} takes integers, so {low}..{high} is not a range of it", code="E_SHAPES")
    if bounds is not None and bounds.required and (low < bounds.low or high >= bounds.high):
        raise SourceError(
            f"{name} indexes a table or counts steps, so its range must be within {bounds.low}..{bounds.high - 1} (got "
            f"{low}..{high})",
            code="E_SHAPES",
        )
    return Integers(int(low), int(high) + 1)


def require_known_ranges(names: list[str], source: Source) -> None:
    for name, _, _ in source.ranges:
        if name not in names:
            wrong = f"the model has no input {name!r}; it has {', '.join(names)}"
            raise SourceError(with_hint(wrong, name, names), code="E_SHAPES")


def _with_batch(name: str, sizes: tuple[int | None, ...], batch: int | None) -> tuple[int | None, ...]:
    if batch is None or not sizes:
        return sizes
    if sizes[0] not in (None, batch):
        raise SourceError(
            f"the first size of {name} is {sizes[0]} in the file, so the batch cannot be {batch}", code="E_SHAPES"
        )
    return (batch, *sizes[1:])


def _text(sizes: tuple[int | None, ...]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in sizes)})"
