"""What ONNX Runtime and OpenVINO made of an ONNX graph. Both are prepared for one batch, since the graph is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairlap.frameworks.compilation import Compilation, Operators

_ONE_GRAPH = "the session is made of the whole graph, and nothing is traced"
_NO_KERNEL = frozenset(("Input", "Output", "Const", "Constant", "Parameter", "Result"))


def compilation_of_session(graph: bytes | str, session: Callable[[bytes | str, Path], Any]) -> Compilation:
    """``session`` makes another one of the same options, which writes its optimized graph to the file."""

    def operators() -> Operators:
        import onnx

        model = onnx.load_from_string(graph) if isinstance(graph, bytes) else onnx.load_model(graph)
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "optimized.onnx"
            session(graph, file)
            optimized = onnx.load_model(file, load_external_data=False)
        return Operators(
            _nodes(model.graph.node), _nodes(optimized.graph.node), "nodes of the ONNX graph, and of the optimized one"
        )

    return Compilation(graphs=lambda: 1, operators=operators, absent={"breaks": _ONE_GRAPH})


def _nodes(nodes: Iterable[Any]) -> int:
    return sum(node.op_type not in _NO_KERNEL for node in nodes)


def compilation_of_openvino(model: Any, compiled: Any) -> Compilation:
    def operators() -> Operators:
        before = [node.get_type_name() for node in model.get_ordered_ops()]
        after = [_layer(node) for node in compiled.get_runtime_model().get_ordered_ops()]
        return Operators(
            sum(kind not in _NO_KERNEL for kind in before),
            sum(kind not in _NO_KERNEL for kind in after),
            "operations of the model, and nodes that the plugin runs, without constants",
        )

    return Compilation(graphs=lambda: 1, operators=operators, absent={"breaks": _ONE_GRAPH})


def _layer(node: Any) -> str:
    found = node.get_rt_info()["layerType"]
    return str(getattr(found, "value", found))
