"""Give every dimension of every input a size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.errors import DimensionsUnbound, ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.graph import Tensor
from fairlap.suggestions import with_hint

MOST_ELEMENTS = 2**33  # of one input; more is a mistake in a dimension, not a benchmark
_EXAMPLES = (128, 224, 64, 32, 28, 16, 8, 4)  # of a size that is not the first, which is 1
Fits = Callable[[Sequence[Sequence[int]]], bool]  # whether the model computes from inputs of these sizes


def bound_inputs(
    inputs: Sequence[Any],
    dimensions: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    fits: Fits = lambda sizes: False,
) -> tuple[Tensor, ...]:
    """Give every dimension of the model's inputs a size.

    A size in ``shapes`` goes before one in ``dimensions``; both must agree with the sizes that the file fixes. Where
    one is missing, examples that ``fits`` are in the message.
    """
    for each in inputs:
        if not each.type.HasField("tensor_type"):
            raise OperatorsUnsupported(f"input {each.name!r} is not a tensor")
    _refuse_unknown_names(inputs, dimensions, shapes, fits)
    bound = [_bound(each, dimensions, shapes.get(each.name)) for each in inputs]
    if any(None in sizes for sizes in bound):
        raise DimensionsUnbound("; ".join(_what_to_bind(inputs, bound, fits)))
    tensors = []
    for each, sizes in zip(inputs, bound, strict=True):
        shape = tuple(size for size in sizes if size is not None)
        if math.prod(shape) > MOST_ELEMENTS:
            raise DimensionsUnbound(f"input {each.name!r} of shape {shape} is too large")
        tensors.append(Tensor(each.name, _dtype(each), shape))
    return tuple(tensors)


def _refuse_unknown_names(
    inputs: Sequence[Any], dimensions: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]], fits: Fits
) -> None:
    names = [each.name for each in inputs]
    if unknown := [name for name in shapes if name not in names]:
        wrong = f"no input is named {', '.join(unknown)}; the inputs are {', '.join(names)}"
        raise DimensionsUnbound(with_hint(wrong, unknown[0], names))
    known = {dim.dim_param for each in inputs for dim in each.type.tensor_type.shape.dim if dim.dim_param}
    if unknown := [name for name in dimensions if name not in known]:
        bound = [_bound(each, {}, None) for each in inputs]
        fixed = all(None not in sizes for sizes in bound)
        nameless = "all its dimensions are fixed" if fixed else "; ".join(_what_to_bind(inputs, bound, fits))
        has = f"it has {', '.join(sorted(known))}" if known else nameless
        wrong = f"the model has no dimension named {', '.join(unknown)}; {has}"
        raise DimensionsUnbound(with_hint(wrong, unknown[0], known))
    for name, size in [*dimensions.items(), *((name, size) for name, sizes in shapes.items() for size in sizes)]:
        if size < 1:
            raise DimensionsUnbound(f"the size of {name} must be at least 1 (got {size})")


def _bound(each: Any, dimensions: Mapping[str, int], given: tuple[int, ...] | None) -> list[int | None]:
    kind = each.type.tensor_type
    if not kind.HasField("shape"):
        return list(given) if given is not None else [None]
    fixed = [_size(dim, dimensions) for dim in kind.shape.dim]
    if given is None:
        return fixed
    declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    if len(given) != len(fixed) or any(size not in (None, new) for size, new in zip(declared, given, strict=True)):
        wanted = ", ".join(_dimension_name(dim) for dim in kind.shape.dim)
        raise DimensionsUnbound(
            f"input {each.name!r} has the shape ({wanted}) in the model, and {given} in the inputs or --shapes given"
        )
    return list(given)


def _size(dim: Any, dimensions: Mapping[str, int]) -> int | None:
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            return None
        return int(dim.dim_value)
    return dimensions.get(dim.dim_param) if dim.dim_param else None


def _what_to_bind(inputs: Sequence[Any], bound: Sequence[list[int | None]], fits: Fits) -> list[str]:
    """With a line to paste, whose sizes are examples; of those that were tried, the first that the model takes."""
    tried = (_examples(inputs, bound, each) for each in _EXAMPLES)
    found = next((each for each in tried if fits(each)), None)
    form = "such as" if found else "as the model takes them, in the form"
    named: dict[str, int] = {}
    shapes, lines = [], []
    for each, sizes, examples in zip(inputs, bound, found or _examples(inputs, bound, _EXAMPLES[0]), strict=True):
        if None not in sizes:
            continue
        kind = each.type.tensor_type
        dims = list(kind.shape.dim)
        shape = ", ".join(map(_dimension_name, dims)) if kind.HasField("shape") else "any shape"
        lines.append(f"{each.name}: bind ({shape})")
        names = [dim.dim_param for dim, size in zip(dims, sizes, strict=False) if size is None]
        if names and all(names):
            named |= {dim.dim_param: size for dim, size in zip(dims, examples, strict=True) if dim.dim_param in names}
        else:
            shapes.append(f"{each.name}:{'x'.join(map(str, examples))}")
    options = [f"--dims {','.join(f'{name}={size}' for name, size in named.items())}"] if named else []
    options += [f"--shapes {','.join(shapes)}"] if shapes else []
    return [f"some dimensions have no size; give all of them, {form} {' '.join(options)}", *lines]


def _examples(inputs: Sequence[Any], bound: Sequence[list[int | None]], size: int) -> list[list[int]]:
    """Sizes of all inputs, with the same one for all dimensions of a name."""
    by_name: dict[str, int] = {}
    found = []
    for each, sizes in zip(inputs, bound, strict=True):
        dims = list(each.type.tensor_type.shape.dim) or [None] * len(sizes)
        own = []
        for place, (dim, known) in enumerate(zip(dims, sizes, strict=True)):
            example = size if place else 1
            named = dim is not None and dim.dim_param
            own.append(known or (by_name.setdefault(dim.dim_param, example) if named else example))
        found.append(own)
    return found


def _dimension_name(dim: Any) -> str:
    return str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"


def _dtype(each: Any) -> str:
    from onnx import helper

    try:
        return str(np.dtype(helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)))
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileInvalid(f"input {each.name!r} has no known element type") from error
