"""Put the branch of an If that is always taken in its place: with every size bound, most conditions are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.graph import Array
from fairlap.models.onnx_import.subgraphs import graphs_in

MOST_BRANCHES = 10_000


def take_known_branches(graph: Any, known_value: Callable[[str], Array | None]) -> None:
    """Change the graph in place. ``known_value`` computes a value of it where that does not depend on data."""
    open_ones: set[str] = set()
    for _ in range(MOST_BRANCHES):
        found = next((each for each in enumerate(graph.node) if _is_open(each[1], open_ones)), None)
        if found is None:
            return
        place, node = found
        condition = known_value(node.input[0])
        if condition is None or condition.size != 1:
            open_ones.add(node.output[0])
        else:
            _replace(graph, place, _branch(node, bool(np.asarray(condition).reshape(()).item())))
    raise ModelFileInvalid(f"the graph has more than {MOST_BRANCHES:,} branches")


def _is_open(node: Any, open_ones: set[str]) -> bool:
    return node.op_type == "If" and node.domain in ("", "ai.onnx") and node.output[0] not in open_ones


def _branch(node: Any, taken: bool) -> Any:
    wanted = "then_branch" if taken else "else_branch"
    for attribute in node.attribute:
        if attribute.name == wanted and attribute.HasField("g") and len(attribute.g.output) == len(node.output):
            return attribute.g
    raise ModelFileInvalid(f"If {node.name!r} has no valid {wanted}")


def _replace(graph: Any, place: int, branch: Any) -> None:
    """Keep the branch's names, by which weights are known, unless the graph has them already."""
    from onnx import helper

    node = graph.node[place]
    taken = {name for each in graph.node for name in each.output} | {each.name for each in graph.initializer}
    own = [*_made_in(branch)]
    names = {name: _free(name, taken) for name in own if name in taken}
    before, after = list(graph.node[:place]), list(graph.node[place + 1 :])
    inside = [renamed(each, names) for each in branch.node]
    ends = [
        helper.make_node("Identity", [names.get(result.name, result.name)], [outer])
        for result, outer in zip(branch.output, node.output, strict=True)
        if outer
    ]
    for tensor in branch.initializer:
        copy = type(tensor)()
        copy.CopyFrom(tensor)
        copy.name = names.get(tensor.name, tensor.name)
        graph.initializer.append(copy)
    nodes = [type(each).FromString(each.SerializeToString()) for each in (*before, *inside, *ends, *after)]
    del graph.node[:]
    graph.node.extend(nodes)


def _made_in(branch: Any) -> Iterator[str]:
    yield from (each.name for each in branch.initializer)
    yield from (name for each in branch.node for name in each.output if name)


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}/{number}" in taken:
        number += 1
    taken.add(f"{name}/{number}")
    return f"{name}/{number}"


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    if names:
        rename(copy, names)
    return copy


def rename(node: Any, names: Mapping[str, str]) -> None:
    """Of what it reads and makes, and of what the graphs inside of it read from outside."""
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for inner in graphs_in(node):
        own = {*_made_in(inner), *(each.name for each in inner.input)}
        outside = {name: new for name, new in names.items() if name not in own}
        for each in inner.node:
            rename(each, outside)
        for result in inner.output:
            result.name = outside.get(result.name, result.name)
