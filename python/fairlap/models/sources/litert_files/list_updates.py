"""Lists of tensors in loops, in which TensorFlow's converter sets a row by joining three parts.

These are what is before the row, the new row, and what is after it. Their sizes change from trip to trip, those of the
list do not. So they are one operator here, which sets a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from fairlap.models.sources.litert_files.operation import Operation, whole_numbers
from fairlap.models.sources.litert_files.part import Operator, Part

SET_ROW = "CONCATENATION of a list in a loop"
_INT64 = 7  # onnx.TensorProto.INT64


def with_list_updates(part: Part, operators: Iterable[Operator]) -> list[Operator]:
    """Put one operator, of the list, the row and its number, in the place of each join of this kind."""
    listed = list(operators)
    makers = {place: each for each in listed for place in each.results}
    return [_updated(part, each, makers) or each for each in listed]


def set_row(op: Operation) -> str:
    number = op.node("Reshape", [op.node("Cast", [op.given(2)], to=_INT64), op.hold(whole_numbers([1, 1]))])
    return op.node("ScatterND", [op.given(0), number, op.given(1)])


def _updated(part: Part, join: Operator, makers: Mapping[int, Operator]) -> Operator | None:
    if (
        join.kind != "CONCATENATION"
        or len(join.inputs) != 3
        or join.options.axis
        or join.options.fusedActivationFunction
    ):
        return None
    before, row, after = (makers.get(place) for place in join.inputs)
    if before is None or row is None or after is None or {before.kind, after.kind} != {"SLICE"}:
        return None
    number = _number_in(part, before.inputs[2], -1, makers)
    next_one = _number_in(part, after.inputs[1], 0, makers)
    fits = (
        before.inputs[0] == after.inputs[0]
        and _are_all(part, before.inputs[1], 0)
        and _are_all(part, after.inputs[2], -1)
        and number is not None
        and next_one is not None
        and _is_next(part, number, makers.get(next_one))
        and part.declared_shape(join.inputs[1])[:1] == (1,)
    )
    if not fits or number is None:
        return None
    return Operator(SET_ROW, None, (before.inputs[0], join.inputs[1], number), join.results)


def _number_in(part: Part, place: int, rest: int, makers: Mapping[int, Operator]) -> int | None:
    """Find the number that goes before others, all of which are ``rest``, in a list of sizes or of places."""
    join = makers.get(place)
    if (
        join is None
        or join.kind != "CONCATENATION"
        or len(join.inputs) != 2
        or not _are_all(part, join.inputs[1], rest)
    ):
        return None
    first = makers.get(join.inputs[0])
    return first.inputs[0] if first is not None and first.kind == "RESHAPE" else None


def _is_next(part: Part, number: int, maker: Operator | None) -> bool:
    if maker is None or maker.kind != "ADD" or maker.options.fusedActivationFunction:
        return False
    others = [place for place in maker.inputs if place != number]
    return len(others) == 1 and _are_all(part, others[0], 1)


def _are_all(part: Part, place: int, value: int) -> bool:
    held = part.constant(place)
    return held is not None and bool(np.all(held == value))
