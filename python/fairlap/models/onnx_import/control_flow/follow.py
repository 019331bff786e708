"""Follow If and Loop.

What they do is put in their place where that is known: the branch that is taken, or the trips one after the other. Else
their graphs become bodies, between which a library chooses or that it repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.models.onnx_import.control_flow.bodies import size_of
from fairlap.models.onnx_import.control_flow.following import (
    Body,
    body_of,
    constant,
    emit,
    formals_of,
    give_names,
    graph_of,
    placed,
    require_few,
    require_same,
    require_single,
    single,
    stack,
)
from fairlap.models.onnx_import.control_flow.scans import follow_scan
from fairlap.models.onnx_import.errors import ModelFileInvalid, OperatorsUnsupported, SizesDoNotFit
from fairlap.models.onnx_import.graph import Array, Node, Tensor

if TYPE_CHECKING:
    from fairlap.models.onnx_import.folding import Folding

MOST_UNROLLED = 64  # trips of a loop that are put one after the other
MOST_COPIED_WHEN_UNROLLED = 2**13  # nodes of all loops that are
MOST_DEPTH = 16  # of graphs inside of graphs


def follow(folding: Folding, proto: Any, node: Node) -> None:
    if folding.depth == MOST_DEPTH:
        raise OperatorsUnsupported(f"{node.operator} {node.name!r} is inside of {MOST_DEPTH} others")
    FOLLOWED[node.operator](folding, proto, node)


def _follow_if(folding: Folding, proto: Any, node: Node) -> None:
    if not all(node.inputs[:1]) or not node.inputs:
        raise ModelFileInvalid(f"If {node.name!r} has no condition")
    branches = [graph_of(proto, node, name, 0, len(node.outputs)) for name in ("then_branch", "else_branch")]
    require_single(folding, node, node.inputs[0], "bool")
    taken = single(folding, node.inputs[0])
    if taken is not None:
        give_names(folding, placed(folding, branches[0 if taken else 1], (), again=False), node.outputs)
        return
    bodies = [_fitting(folding, branch) for branch in branches]
    fitting = [body for body in bodies if isinstance(body, Body)]
    if not fitting:
        raise next(body for body in bodies if isinstance(body, SizesDoNotFit))
    for name, one, other in zip(node.outputs, fitting[0].outputs, fitting[-1].outputs, strict=False):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            raise OperatorsUnsupported(
                f"{name!r} is {one.dtype} of shape {one.shape} or {other.dtype} of shape {other.shape}: data decide,"
                f" by If {node.name!r}"
            )
    captured = tuple(sorted({name for body in fitting for name in body.captured}))
    graphs = [body.graph(captured, folding) if isinstance(body, Body) else None for body in bodies]
    attributes = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
    results = [(each.dtype, each.shape) for each in fitting[0].outputs]
    emit(folding, node, (node.inputs[0], *captured), results, attributes)


def _fitting(folding: Folding, branch: Any) -> Body | SizesDoNotFit:
    """Fold a branch, if it can compute these sizes: some files have a branch for each size, and take no other."""
    try:
        return body_of(folding, branch, (), {})
    except SizesDoNotFit as error:
        return error


def _follow_loop(folding: Folding, proto: Any, node: Node) -> None:
    trip, condition, *states = node.inputs if len(node.inputs) > 1 else (*node.inputs, "", "")[:2]
    held = len(states)
    graph = graph_of(proto, node, "body", held + 2, len(node.outputs) + 1)
    require_single(folding, node, trip, "int64")
    require_single(folding, node, condition, "bool")
    most, goes_on = single(folding, trip), single(folding, condition)
    starts = True if not condition else goes_on
    are_known = (most is not None or not trip) and starts is not None
    if are_known and _unrolled(folding, graph, node, states, most, starts):
        return
    truth = _truth(folding, condition)
    number = Tensor(graph.input[0].name, "int64", _shape_of_number(graph))
    going = Tensor(graph.input[1].name, "bool", truth.shape)
    formals = (number, going, *formals_of(folding, node, states, graph.input[2:]))
    body = body_of(folding, graph, formals, {1: truth})  # it is true whenever the body runs
    require_same(node, body.formals[2:], body.outputs[1 : 1 + held])
    more = body.known(0)
    always = bool(starts) and more is not None and bool(more.all())
    if always and not trip:
        raise ModelFileInvalid(f"Loop {node.name!r} never ends")
    made = tuple((each.dtype, each.shape) for each in body.outputs[1 + held :])
    results = [(each.dtype, each.shape) for each in body.formals[2:]]
    fixed = always and most is not None
    if fixed:
        require_few(node, most)
        results += [(dtype, (most, *shape)) for dtype, shape in made]
    elif any(node.outputs[held:]):
        name = next(filter(None, node.outputs[held:]))
        raise OperatorsUnsupported(f"the size of {name!r}, which Loop computes, depends on data")
    attributes = {
        "body": body.graph(body.captured, folding),
        "trips": most,
        "fixed": fixed,
        "states": held,
        "number": number.shape,
        "made": made,
    }
    ends = ("" if most is not None else trip, "" if fixed else condition)
    emit(folding, node, (*ends, *states, *body.captured), results, attributes)


def _unrolled(folding: Folding, graph: Any, node: Node, states: Sequence[str], most: int | None, goes_on: bool) -> bool:
    """Put all trips one after the other, or nothing if they are many or data decide how many."""
    if most is not None:
        copies = min(most, MOST_UNROLLED) * size_of(graph)
        if copies > MOST_COPIED_WHEN_UNROLLED or (most > MOST_UNROLLED and _keeps_going(graph)):
            return False
    before, held = folding.result.copied(), len(states)
    truth = constant(folding, "goes on", _truth(folding, (*node.inputs, "", "")[1]))
    now: Sequence[str] = states
    columns: list[list[str]] = [[] for _ in node.outputs[held:]]
    trip = 0
    while goes_on and (most is None or trip < most):
        more = None
        if trip < MOST_UNROLLED and folding.scope.copied_nodes < MOST_COPIED_WHEN_UNROLLED:
            number = constant(folding, "trip", np.full(_shape_of_number(graph), trip, np.int64))
            _, *now = ends = placed(folding, graph, (number, truth, *now), again=True)
            more = single(folding, ends[0])
        if more is None:
            folding.result = before
            return False
        for column, end in zip(columns, now[held:], strict=False):
            column.append(end)
        goes_on, now, trip = bool(more), now[:held], trip + 1
    for name, column in zip(node.outputs[held:], columns, strict=True):
        if name and not column:
            raise OperatorsUnsupported(f"Loop {node.name!r} never runs, so that {name!r} has no numbers")
        if name:
            stack(folding, column, name)
    give_names(folding, now, node.outputs[:held])
    return True


def _keeps_going(graph: Any) -> bool:
    """Whether the body gives its condition back as it got it."""
    same = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    name = graph.output[0].name
    while name in same:
        name = same.pop(name)
    return bool(name == graph.input[1].name)


def _shape_of_number(graph: Any) -> tuple[int, ...]:
    """Of the trip's number, as the body wants it: some exporters write it as an array of one."""
    return (1,) * min(1, len(graph.input[0].type.tensor_type.shape.dim))


def _truth(folding: Folding, condition: str) -> Array:
    return np.ones(folding.result.values[condition].shape if condition else (), bool)


FOLLOWED: Mapping[str, Callable[[Folding, Any, Node], None]] = {
    "If": _follow_if,
    "Loop": _follow_loop,
    "Scan": follow_scan,
}
