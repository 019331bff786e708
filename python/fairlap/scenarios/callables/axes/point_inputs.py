"""The arguments of one call at a point: drawn with the point's sizes, in its type and memory layout.

A type or layout that the function which draws takes as a parameter is its own business. Otherwise the arrays of NumPy
that it returns are converted here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fairlap.errors import InvalidRequest, described
from fairlap.scenarios.callables.answers.structural import strided, transposed
from fairlap.scenarios.callables.axes.axis import Axis, BadAxis, Point, nearest, point_text

DrawArguments: TypeAlias = Callable[..., object]
Array: TypeAlias = np.ndarray[Any, Any]

DTYPE, LAYOUT = "dtype", "layout"
CONTIGUOUS, TRANSPOSED, STRIDED = "contiguous", "transposed", "strided"
LAYOUTS = (CONTIGUOUS, TRANSPOSED, STRIDED)
_OF_TRANSPOSING = 2  # dimensions
_TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "complex64", "complex128")


class DrawFailed(InvalidRequest):
    """The function that draws the inputs raised at a point."""

    code = "E_DRAW"


@dataclass(frozen=True)
class PointInputs:
    """``applied`` are the axes that the function does not take."""

    draw: DrawArguments
    applied: tuple[str, ...]

    def applied_dtype(self, point: Point) -> str:
        """Return the type that arrays are converted to at this point; empty where they stay as drawn."""
        return str(point[DTYPE]) if DTYPE in self.applied else ""

    def at(self, point: Point, rng: np.random.Generator) -> object:
        """Draw the arguments of a call; equal generators give equal values in every type and layout."""
        sizes = {name: value for name, value in point.items() if name not in self.applied}
        try:
            drawn = self.draw(rng, **sizes)
        except Exception as error:
            raise DrawFailed(f"drawing the inputs at {point_text(point)} raised {described(error)}") from error
        if DTYPE in self.applied:
            drawn = with_dtype(drawn, str(point[DTYPE]))
        return with_layout(drawn, str(point[LAYOUT])) if LAYOUT in self.applied else drawn


def point_inputs(draw: DrawArguments, axes: Sequence[Axis]) -> PointInputs:
    """Check, before anything runs, that the function takes the axes and needs no other parameter."""
    parameters = parameters_of(draw, "inputs")[1:]  # the first is the generator of random numbers
    names = [each.name for each in parameters if each.kind not in _VARIABLE]
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    given = [axis.name for axis in axes]
    without = [axis for axis in axes if not takes_all and axis.name not in names]
    for axis in without:
        if axis.name == DTYPE:
            _require_numpy_types(axis)
        elif axis.name == LAYOUT:
            _require_layouts(axis)
        else:
            raise BadAxis(f"the inputs take no parameter {axis.name!r}{nearest(axis.name, names)}")
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in _VARIABLE]
    if missing := next((name for name in needed if name not in given), ""):
        raise BadAxis(f"the inputs need {missing!r}, which has no default; add an axis such as {missing}=1K,1M")
    return PointInputs(draw, tuple(axis.name for axis in without))


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(call: Callable[..., object], what: str) -> list[inspect.Parameter]:
    if not callable(call):
        raise BadAxis(f"{what}= must be a function (got {type(call).__name__})")
    try:
        return list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        raise BadAxis(f"the parameters of {what} cannot be read; wrap it in a function of Python") from None


def arrays_in(value: object) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from arrays_in(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from arrays_in(each)


def with_dtype(value: object, dtype: str) -> object:
    """Convert arrays of floating numbers, or where there are none those of integers."""
    kinds = {array.dtype.kind for array in arrays_in(value)}
    converted = "fc" if kinds & set("fc") else "iu"
    if not kinds & set(converted):
        raise BadAxis(f"no array of NumPy among the inputs can become {dtype}; give their function a parameter dtype")
    return _mapped(value, lambda array: array.astype(dtype) if array.dtype.kind in converted else array)


def with_layout(value: object, layout: str) -> object:
    """Put the same values elsewhere in memory: by columns, or into every second element of a larger array."""
    least = _OF_TRANSPOSING if layout == TRANSPOSED else 1
    if not any(array.ndim >= least for array in arrays_in(value)):
        what = f"of {least} dimensions or more " if least > 1 else ""
        raise BadAxis(
            f"no array of NumPy {what}among the inputs can be {layout}; give their function a parameter layout"
        )
    return _mapped(value, lambda array: _laid_out(array, layout) if array.ndim >= least else array)


def _laid_out(array: Array, layout: str) -> Array:
    if layout == CONTIGUOUS:
        return np.array(array, order="C")
    return transposed(array) if layout == TRANSPOSED else strided(array)


def _mapped(value: Any, convert: Callable[[Array], Array]) -> object:
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, Mapping):
        return {name: _mapped(each, convert) for name, each in value.items()}
    if isinstance(value, tuple | list):
        found: list[Any] = [_mapped(each, convert) for each in value]
        is_named = isinstance(value, tuple) and hasattr(value, "_fields")
        return type(value)(*found) if is_named else type(value)(found)
    return value


def _require_numpy_types(axis: Axis) -> None:
    for value in axis.values:
        try:
            np.dtype(str(value))
        except TypeError:
            raise BadAxis(
                f"NumPy has no type {value!r}, and the inputs take no parameter dtype{nearest(str(value), _TYPES)}"
            ) from None


def _require_layouts(axis: Axis) -> None:
    for value in axis.values:
        if value not in LAYOUTS:
            raise BadAxis(
                f"{value!r} is not a layout, and the inputs take no such parameter{nearest(str(value), LAYOUTS)}"
            )
