"""GELU and SiLU, however they are written: what a chain of elementary operators computes is compared in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fairlap.models.onnx_import.evaluation import evaluate
from fairlap.models.onnx_import.graph import Array, Node
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary
from fairlap.models.onnx_import.patterns.view import GraphView

_PROBES = np.linspace(-6, 6, 61)
_CLOSE = 1e-6  # constants of a file are rounded to float32
_CHAIN = ("Add", "Div", "Erf", "Identity", "Mul", "Neg", "Pow", "Sigmoid", "Sqrt", "Sub", "Tanh")
_HEART = ("Erf", "Sigmoid", "Tanh")
_LONGEST = 14


def _gelu(value: Array) -> Array:
    from scipy import special  # type: ignore[import-untyped,unused-ignore]  # takes 0.3 s, and few models need it

    return np.asarray(value * (special.erf(value / math.sqrt(2)) + 1) / 2)


def _gelu_tanh(value: Array) -> Array:
    return np.asarray(value * (np.tanh((value + 0.044715 * value**3) * math.sqrt(2 / math.pi)) + 1) / 2)


def _silu(value: Array) -> Array:
    from scipy import special

    return np.asarray(value * special.expit(value))


_KNOWN: tuple[tuple[Callable[[Array], Array], str, dict[str, str]], ...] = (
    (_gelu, "Gelu", {}),
    (_gelu_tanh, "Gelu", {"approximate": "tanh"}),
    (_silu, "Swish", {}),
)


def fuse_activation(view: GraphView, node: Node) -> Node | None:
    """Fuse the longest chain that ends here, starts at one value and computes a known function of it."""
    shape = view.shape(node.outputs[0])
    for source in _sources(view, node):
        if view.shape(source) != shape:
            continue
        chain = _chain(view, node, source)
        if chain is None or not any(each.operator in _HEART for each in chain):
            continue
        computed = _computed(view, chain, source)
        for function, operator, attributes in _KNOWN:
            if computed is not None and np.abs(computed - function(_PROBES)).max() < _CLOSE:
                return Node(operator, (source,), (), attributes)
    return None


def _sources(view: GraphView, node: Node) -> list[str]:
    """Values that are a factor of the product, from the end backwards."""
    found: list[str] = []
    waiting = [node]
    while waiting and len(found) < _LONGEST:
        for name in waiting.pop(0).inputs:
            if name in view.known:
                continue
            found.append(name)
            producer = view.producer(name, "Mul", "Div")
            if producer is not None:
                waiting.append(producer)
    return found


def _chain(view: GraphView, end: Node, source: str) -> list[Node] | None:
    """List the nodes between a value and the end, in order; None if they depend on anything else."""
    nodes: dict[str, Node] = {}
    waiting = [end]
    while waiting:
        node = waiting.pop()
        if node.outputs[0] in nodes:
            continue
        nodes[node.outputs[0]] = node
        if len(nodes) > _LONGEST or node.operator not in _CHAIN:
            return None
        for name in node.inputs:
            if name == source or view.number(name) is not None:
                continue
            producer = view.producer(name)
            if producer is None:
                return None
            waiting.append(producer)
    return [node for node in view.nodes if node.outputs[0] in nodes]


def _computed(view: GraphView, chain: list[Node], source: str) -> Array | None:
    known = {source: _PROBES}
    library = NumPyLibrary()
    for node in chain:
        known.update({name: np.float64(view.number(name)) for name in node.inputs if name not in known})  # type: ignore[misc]
        (known[node.outputs[0]],) = evaluate(library, node, known, view.values, view.graph.opset)
    computed = known[chain[-1].outputs[0]]
    return computed if computed.shape == _PROBES.shape else None
