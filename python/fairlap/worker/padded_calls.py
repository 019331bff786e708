"""Pad what a call gets up to the sizes that a contestant was asked for, and cut its answer back to the true one.

Padding, with zeros after the values, is part of a call, and so is handing the padded arrays over: it is what
a program does that gets requests of any size. The answer is cut when it is read, which is a view of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairlap import quantity_text
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload
from fairlap.request.fields.sizes.padding import OPTIONS, PaddedSize, Shapes, goes_to_one_size

IN_FORCE = "padded"

Bind = Callable[[Arrays], Callable[[], Any]]
_Key = tuple[tuple[str, tuple[int, ...]], ...]


def require_sizes(options: Mapping[str, str], sizes: tuple[PaddedSize, ...]) -> None:
    """Refuse to leave out a padding that was asked for."""
    if (asked := [name for name in OPTIONS if name in options]) and not sizes:
        raise Unsupported(f"{asked[0]}= pads the calls of a mix of sizes, and this is none")


def size_of(sizes: tuple[PaddedSize, ...], arrays: Arrays) -> PaddedSize:
    """Find the one of these that the arrays have."""
    return _by_shapes(sizes)[_key({name: array.shape for name, array in arrays.items()})]


def grown(arrays: Arrays, shapes: Shapes) -> dict[str, np.ndarray]:
    return {name: _grown(arrays[name], shape) for name, shape in shapes.items()}


def padded(contestant: Contestant, work: Workload) -> Contestant:
    if not work.padded:
        return contestant
    by_shapes = _by_shapes(work.padded)

    def binding(bind: Bind) -> Bind:
        def bound(arrays: Arrays) -> Callable[[], Any]:
            size = by_shapes[_key({name: array.shape for name, array in arrays.items()})]
            shapes = size.inputs

            def call() -> Any:
                return bind(grown(arrays, shapes))()

            call.size = size  # type: ignore[attr-defined]
            return call

        return bound

    def outputs_of(call: Any, result: Any) -> dict[str, np.ndarray]:
        return {name: cut(array, call.size.outputs[name]) for name, array in contestant.outputs(result).items()}

    def compilation() -> Compilation:
        found = Compilation() if contestant.compilation is None else contestant.compilation()
        takes_them = found.bind is not None or goes_to_one_size(work.padded)
        any_size = contestant.bind_once or found.bind or contestant.bind
        return replace(found, bind=binding(any_size) if takes_them else None, bind_as=None)

    profiler = contestant.profiler
    if profiler is not None and profiler.bind is not None:
        profiler = replace(profiler, bind=binding(profiler.bind))
    to = len({_key(each.inputs) for each in work.padded})
    note = f"{quantity_text.count(len(work.padded), 'size')} to {to}"
    return replace(
        contestant,
        bind=binding(contestant.bind_once or contestant.bind),
        bind_once=None,
        bind_new=None,
        outputs_of=outputs_of,
        compilation=compilation,
        profiler=profiler,
        fed=None,
        rebind=None,
        in_force={**contestant.in_force, IN_FORCE: note},
    )


def cut(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Select what lies within this shape."""
    return array[tuple(slice(size) for size in shape)]


def _grown(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape == shape:
        return array
    found = np.zeros(shape, array.dtype)
    found[tuple([slice(size) for size in array.shape])] = array
    return found


def _by_shapes(sizes: tuple[PaddedSize, ...]) -> dict[_Key, PaddedSize]:
    return {_key(each.given): each for each in sizes}


def _key(shapes: Shapes) -> _Key:
    return tuple(sorted(shapes.items()))
