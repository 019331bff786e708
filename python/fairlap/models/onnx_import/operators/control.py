"""If, Loop and Scan whose bodies, functions of arrays by place, are chosen or repeated while the model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fairlap.models.onnx_import.libraries.control import Kinds
from fairlap.models.onnx_import.operators.registry import operator

Body = Callable[..., tuple[Any, ...]]
Ways = Sequence[tuple[int, bool]]  # an axis, and whether it is walked backwards


@operator("If", folds=False)
def if_(library: Any, condition: Any, *captured: Any, then_branch: Body | None, else_branch: Body | None) -> Any:
    if then_branch is None or else_branch is None:  # the other one does not fit the sizes of the inputs
        library.expect(condition, else_branch is None)
        return (then_branch or else_branch)(*captured)  # type: ignore[misc]
    return library.choose(condition, partial(then_branch, *captured), partial(else_branch, *captured))


@operator("Loop", folds=False)
def loop(
    library: Any,
    most: Any = None,
    goes_on: Any = None,
    *values: Any,
    body: Body,
    trips: int | None,
    fixed: bool,
    states: int,
    number: tuple[int, ...],
    made: Kinds,
) -> Any:
    captured = values[states:]

    def step(at: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:
        return body(library.reshape(at, number) if number else at, *now, *captured)

    def step_of_fixed(at: Any, now: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, Any]:
        _, *found = step(at, now)
        return tuple(found[:states]), tuple(found[states:])

    def step_of_open(at: Any, now: tuple[Any, ...]) -> tuple[Any, Any]:
        goes_on, *found = step(at, now)
        return goes_on, tuple(found[:states])

    if fixed:
        final, columns = library.repeat(step_of_fixed, trips, values[:states], (), made)
        return *final, *columns
    goes_on = True if goes_on is None else goes_on
    return library.repeat_while(step_of_open, goes_on, most if trips is None else trips, values[:states])


@operator("Scan", folds=False)
def scan(
    library: Any,
    *values: Any,
    body: Body,
    trips: int,
    states: int,
    rows: Ways,
    columns: Ways,
    made: Kinds,
    items: int | None,
) -> Any:
    given, captured = values[: states + len(rows)], values[states + len(rows) :]

    def step(_: Any, now: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, Any]:
        found = body(*now, *row, *captured)
        return found[:states], found[states:]

    def of_one(*own: Any) -> tuple[Any, ...]:
        lines = tuple(_first(library, each, axis, back) for each, (axis, back) in zip(own[states:], rows, strict=True))
        final, new = library.repeat(step, trips, tuple(own[:states]), lines, made)
        return *final, *(_placed(library, each, *way) for each, way in zip(new, columns, strict=True))

    if items is None:
        return of_one(*given)
    found = [of_one(*(each[item] for each in given)) for item in range(items)]
    return tuple(library.stacked(kind) for kind in zip(*found, strict=True))


def _first(library: Any, value: Any, axis: int, backwards: bool) -> Any:
    """Move an axis to the front."""
    if axis:
        value = library.transpose(value, (axis, *(at for at in range(len(value.shape)) if at != axis)))
    return library.flip(value, (0,)) if backwards else value


def _placed(library: Any, value: Any, axis: int, backwards: bool) -> Any:
    """Move the first axis to its place."""
    value = library.flip(value, (0,)) if backwards else value
    order = list(range(1, len(value.shape)))
    order.insert(axis, 0)
    return library.transpose(value, tuple(order)) if axis else value
