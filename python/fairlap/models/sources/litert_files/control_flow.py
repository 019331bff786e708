"""Loops and branches: WHILE and IF, whose graphs become those inside of Loop and If.

A state of a loop that its body returns as it got it, such as the weights of a recurrence, is read from outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlap.models.sources.litert_files.onnx_graph import OnnxGraph, Untranslated
from fairlap.models.sources.litert_files.operation import Operation, Translation


def _loop(op: Operation) -> Sequence[str]:
    from onnx import TensorProto, helper

    condition, body = int(op.options.condSubgraphIndex), int(op.options.bodySubgraphIndex)
    inner = op.parts.part(body)
    given = [_outer(op, place) for place in range(len(op.inputs))]
    if not len(given) == len(inner.inputs) == len(inner.outputs) == len(op.operator.results):
        raise Untranslated("WHILE whose states do not fit its body")
    states = [at for at in range(len(given)) if inner.inputs[at] != inner.outputs[at]]
    (first,) = op.parts.placed(condition, given, op.onnx)

    inside = op.onnx.inside()
    number, goes_on = inside.fresh(), inside.fresh()
    named = list(given)
    for at in states:
        named[at] = inside.fresh()
    ends = op.parts.placed(body, named, inside)
    (more,) = op.parts.placed(condition, ends, inside)
    results = [inside.node("Identity", [each]) for each in (more, *(ends[at] for at in states))]
    graph = helper.make_graph(
        inside.nodes,
        "body",
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(goes_on, TensorProto.BOOL, []),
            *op.parts.described(inner, [inner.inputs[at] for at in states], [named[at] for at in states]),
        ],
        [
            helper.make_tensor_value_info(results[0], TensorProto.BOOL, []),
            *op.parts.described(inner, [inner.outputs[at] for at in states], results[1:]),
        ],
    )
    made = [op.onnx.fresh() for _ in states]
    if made:
        op.onnx.node("Loop", ["", first, *(given[at] for at in states)], made, body=graph)
    found = dict(zip(states, made, strict=True))
    return [_in_steps(op.onnx, found.get(at, given[at])) for at in range(len(given))]


def _branch(op: Operation) -> Sequence[str]:
    given = [_outer(op, place) for place in range(len(op.inputs))]
    graphs = {}
    for name, number in (("then", op.options.thenSubgraphIndex), ("else", op.options.elseSubgraphIndex)):
        inside, inner = op.onnx.inside(), op.parts.part(int(number))
        ends = op.parts.placed(int(number), given[1:], inside)
        results = [inside.node("Identity", [each]) for each in ends]
        graphs[f"{name}_branch"] = _graph_without_inputs(inside, op.parts.described(inner, inner.outputs, results))
    made = [op.onnx.fresh() for _ in op.operator.results]
    op.onnx.node("If", given[:1], made, **graphs)
    return [_in_steps(op.onnx, each) for each in made]


def _graph_without_inputs(inside: OnnxGraph, outputs: Sequence[Any]) -> Any:
    from onnx import helper

    return helper.make_graph(inside.nodes, "branch", [], outputs)


def _outer(op: Operation, place: int) -> str:
    """Name a value as it is: graphs inside make real numbers of whole ones themselves."""
    tensor = op.inputs[place]
    return op.names[tensor] if tensor in op.names else op.hold(op.constant(place), place)


def _in_steps(onnx: OnnxGraph, name: str) -> str:
    """Note that it is in whole numbers already, if it has steps."""
    onnx.in_steps.add(name)
    return name


CONTROL_FLOW: Mapping[str, Translation] = {"WHILE": _loop, "IF": _branch}
