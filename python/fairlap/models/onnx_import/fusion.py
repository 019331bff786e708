"""Replace patterns of elementary operators by the functions that libraries have for them.

Exporters spell out layer normalisation, GELU and attention; a person would call the library's own. The float64
reference is never fused, so a wrong replacement shows as a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from fairlap.models.onnx_import.graph import Array, Graph, Node, Tensor, needed_nodes
from fairlap.models.onnx_import.patterns.activation import fuse_activation
from fairlap.models.onnx_import.patterns.attention import fuse_attention
from fairlap.models.onnx_import.patterns.linear import fuse_linear, fuse_turned_matrix
from fairlap.models.onnx_import.patterns.normalisation import fuse_layer_norm, fuse_rms_norm
from fairlap.models.onnx_import.patterns.view import GraphView

Rule = Callable[[GraphView, Node], Node | None]
"""Given the last node of a pattern, the node that replaces it. What it no longer uses is removed by the builder."""

RULES: Mapping[str, tuple[Rule, ...]] = {
    "Add": (fuse_layer_norm, fuse_linear),
    "MatMul": (fuse_attention, fuse_turned_matrix),
    "Gemm": (fuse_linear,),
    "Mul": (fuse_activation, fuse_layer_norm, fuse_rms_norm),
    "Div": (fuse_activation,),
}


def fused(nodes: Iterable[Node], graph: Graph, known: Mapping[str, Array]) -> tuple[list[Node], dict[str, Tensor]]:
    """Replace known patterns, and return the nodes to compute, and the types of all values."""
    view = GraphView(nodes, graph, known)
    result = []
    for node in view.nodes:
        for rule in RULES.get(node.operator, ()):
            if (replacement := rule(view, node)) is not None:
                node = replace(replacement, outputs=node.outputs, name=node.name)
                view.put(node)
                break
        result += [*view.added, node]
        view.added.clear()
    return needed_nodes(result, {tensor.name for tensor in graph.outputs}), view.values
