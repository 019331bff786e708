"""Graphs inside of nodes, such as the branches of an If, and what they read of the graphs around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def graphs_in(node: Any) -> list[Any]:
    return [
        inner
        for attribute in node.attribute
        for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]


def graphs_under(graph: Any) -> Iterator[Any]:
    """Walk through the graph, and all that are inside of its nodes."""
    yield graph
    for node in graph.node:
        for inner in graphs_in(node):
            yield from graphs_under(inner)


def names_read_by(node: Any) -> Iterator[str]:
    """By the node, and by the graphs inside of it, which see all that is outside."""
    yield from node.input
    for inner in graphs_in(node):
        for each in inner.node:
            yield from names_read_by(each)
        yield from (value.name for value in inner.output)
