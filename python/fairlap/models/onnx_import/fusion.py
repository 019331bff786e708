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
from fairlap.models.onnx_import.patterns.normalisation import fuse_layer_norm, fuse_rms_norm
from fairlap.models.onnx_import.patterns.view import GraphView


def fuse_linear(view: GraphView, node: Node) -> Node | None:
    """Fuse a Gemm without factors, or a product with a weight followed by its bias."""
    return _of_gemm(view, node) if node.operator == "Gemm" else _of_sum(view, node)


def _of_gemm(view: GraphView, node: Node) -> Node | None:
    factors = (node.attributes.get("alpha", 1), node.attributes.get("beta", 1), node.attributes.get("transA", 0))
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if factors != (1, 1, 0) or not view.is_floating(node.inputs[0]) or (bias and len(view.shape(bias)) != 1):
        return None
    columns = view.shape(node.outputs[0])[1]
    if bias and view.shape(bias) != (columns,):
        return None
    inputs = (*node.inputs[:2], *((bias,) if bias else ()))
    return Node("Linear", inputs, (), {"turned": bool(node.attributes.get("transB", 0))})


def _of_sum(view: GraphView, node: Node) -> Node | None:
    for product_name, bias in (node.inputs, node.inputs[::-1]):
        product = view.producer(product_name, "Linear")
        if product is None or len(product.inputs) != 2 or not view.used_once(product_name):
            continue
        if view.shape(bias) == view.shape(product_name)[-1:]:
            return Node("Linear", (*product.inputs, bias), (), product.attributes)
    return None


def fuse_turned_matrix(view: GraphView, node: Node) -> Node | None:
    """Fuse a product with a matrix that is a weight or a weight turned around."""
    value, matrix = node.inputs
    if len(view.shape(matrix)) != 2 or len(view.shape(value)) < 2 or not view.is_floating(value):
        return None
    if matrix in view.graph.weights:
        return Node("Linear", (value, matrix), (), {"turned": False})
    turned = view.producer(matrix, "Transpose")
    if turned is not None and turned.inputs[0] in view.graph.weights:
        perm = tuple(turned.attributes.get("perm") or (1, 0))
        if perm == (1, 0):
            return Node("Linear", (value, turned.inputs[0]), (), {"turned": True})
    return None


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
