"""Follow Scan, which runs its body once for each row of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlap.models.onnx_import.control_flow.following import (
    body_of,
    emit,
    formals_of,
    graph_of,
    require_few,
    require_same,
)
from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported
from fairlap.models.onnx_import.graph import Node, Tensor

if TYPE_CHECKING:
    from fairlap.models.onnx_import.folding import Folding


def follow_scan(folding: Folding, proto: Any, node: Node) -> None:
    given, read = list(node.inputs), dict(node.attributes)
    by_item = folding.opset < 9  # for each item of a batch
    if by_item:
        if not given or given.pop(0):
            raise OperatorsUnsupported(f"Scan {node.name!r} has sequences of their own lengths")
        read["scan_input_directions"] = read.pop("directions", None)
    count = read.get("num_scan_inputs")
    if not isinstance(count, int) or not 0 < count <= len(given):
        raise ModelFileInvalid(f"Scan {node.name!r} has no valid number of inputs")
    held = len(given) - count
    graph = graph_of(proto, node, "body", len(given), len(node.outputs))
    formals = formals_of(folding, node, given, graph.input)
    items = None
    if by_item:
        items = _one(node, {each.shape[:1] for each in formals}, "batches")[0]
        formals = [replace(each, shape=each.shape[1:]) for each in formals]
    axes = _axes(node, read.get("scan_input_axes"), [len(each.shape) for each in formals[held:]])
    trips = _one(node, {each.shape[at : at + 1] for each, at in zip(formals[held:], axes, strict=True)}, "rows")[0]
    require_few(node, trips)
    formals[held:] = [_without(each, at) for each, at in zip(formals[held:], axes, strict=True)]
    body = body_of(folding, graph, formals, {})
    require_same(node, body.formals[:held], body.outputs[:held])
    made = tuple((each.dtype, each.shape) for each in body.outputs[held:])
    places = _axes(node, read.get("scan_output_axes"), [len(shape) + 1 for _, shape in made])
    results = [(each.dtype, each.shape) for each in body.formals[:held]]
    results += [(dtype, (*shape[:at], trips, *shape[at:])) for (dtype, shape), at in zip(made, places, strict=True)]
    if items is not None:
        results = [(dtype, (items, *shape)) for dtype, shape in results]
    attributes = {
        "body": body.graph(body.captured, folding),
        "trips": trips,
        "states": held,
        "rows": tuple(zip(axes, _backwards(node, read.get("scan_input_directions"), axes), strict=True)),
        "columns": tuple(zip(places, _backwards(node, read.get("scan_output_directions"), places), strict=True)),
        "made": made,
        "items": items,
    }
    emit(folding, node, (*given, *body.captured), results, attributes)


def _one(node: Node, sizes: set[tuple[int, ...]], what: str) -> tuple[int, ...]:
    if len(sizes) != 1 or not all(sizes):
        raise ModelFileInvalid(f"the inputs of Scan {node.name!r} have several numbers of {what}")
    (size,) = sizes
    if not size[0]:
        raise OperatorsUnsupported(f"Scan {node.name!r} has no {what}")
    return size


def _without(tensor: Tensor, axis: int) -> Tensor:
    return replace(tensor, shape=(*tensor.shape[:axis], *tensor.shape[axis + 1 :]))


def _axes(node: Node, axes: Sequence[int] | None, ranks: Sequence[int]) -> list[int]:
    """Count axes from the start; the first one each, if none are given."""
    axes = axes or [0] * len(ranks)
    if len(axes) != len(ranks) or any(not -rank <= axis < rank for axis, rank in zip(axes, ranks, strict=True)):
        raise ModelFileInvalid(f"Scan {node.name!r} has axes that do not fit: {tuple(axes)}")
    return [axis % rank for axis, rank in zip(axes, ranks, strict=True)]


def _backwards(node: Node, directions: Sequence[int] | None, axes: Sequence[int]) -> list[bool]:
    directions = directions or [0] * len(axes)
    if len(directions) != len(axes):
        raise ModelFileInvalid(f"Scan {node.name!r} has directions that do not fit: {tuple(directions)}")
    return [each == 1 for each in directions]
