"""Sizes of files that have no names for their dimensions: ``ids:1`` is axis 1 of the input ``ids``.

Axes that change together are joined: ``ids:1+mask:1``.
"""

from __future__ import annotations

import re

from fairlap.models.onnx_import.errors import DimensionsUnbound
from fairlap.models.sources.sizes import Declared
from fairlap.request.fields.source import Source
from fairlap.suggestions import with_hint

_AXIS = re.compile(r"(?P<input>.+):(?P<axis>\d{1,2})")

Place = tuple[str, int]


def places_in(name: str, declared: Declared, source: Source) -> list[Place]:
    """Find the inputs and axes that a dimension names. Raises DimensionsUnbound where the model has none such."""
    found = []
    for part in name.split("+"):
        match = _AXIS.fullmatch(part.strip())
        if match is None:
            first = next(iter(declared))
            wrong = (
                f"{source.text} has no dimension named {name!r}; its sizes are named by input and axis, such as "
                f"{first}:0 (its inputs are {_listed(declared)})"
            )
            raise DimensionsUnbound(with_hint(wrong, name, _axes_of(declared)))
        place = match["input"], int(match["axis"])
        if place[0] not in declared or place[1] >= len(declared[place[0]]):
            wrong = f"{source.text} has no axis {part.strip()}; its inputs are {_listed(declared)}"
            raise DimensionsUnbound(with_hint(wrong, part.strip(), _axes_of(declared)))
        found.append(place)
    return found


def _axes_of(declared: Declared) -> list[str]:
    return [f"{name}:{axis}" for name, sizes in declared.items() for axis in range(len(sizes))]


def with_sizes(declared: Declared, source: Source) -> dict[str, tuple[int | None, ...]]:
    """Put the sizes of the request's dimensions in the place of those that a file leaves open."""
    found = {name: list(sizes) for name, sizes in declared.items()}
    for name, size in asked_sizes(source):
        for tensor, axis in places_in(name, declared, source):
            own = declared[tensor][axis]
            if own not in (None, size):
                raise DimensionsUnbound(f"size {axis} of {tensor} is {own} in {source.text}, so it cannot be {size}")
            found[tensor][axis] = size
    return {name: tuple(sizes) for name, sizes in found.items()}


def asked_sizes(source: Source) -> list[tuple[str, int]]:
    """List the request's dimensions, without names that only others of its models have."""
    return [each for each in source.dims if not source.among_others or all(map(_AXIS.fullmatch, each[0].split("+")))]


def _listed(declared: Declared) -> str:
    shapes = (
        f"{name} ({', '.join('?' if size is None else str(size) for size in own)})" for name, own in declared.items()
    )
    return ", ".join(shapes)
