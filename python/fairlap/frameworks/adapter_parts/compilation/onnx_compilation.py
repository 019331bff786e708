"""What ONNX Runtime and OpenVINO made of an ONNX graph. Both are made for its sizes, unless it leaves them open."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairlap.frameworks.contract_parts.compilation import Compilation, Operators, Types
from fairlap.models.arrays import Arrays

Bind = Callable[[Arrays], Callable[[], Any]]
_ONE_GRAPH = "the session is made of the whole graph, and nothing is traced"
_FIXED_TYPES = "the graph declares the types of its inputs, and it takes no others"
_NO_KERNEL = frozenset(("Input", "Output", "Const", "Constant", "Parameter", "Result"))


def compilation_of_session(
    graph: bytes | str,
    session: Callable[[bytes | str, Path], Any],
    bind: Bind,
    any_size: Bind | None,
) -> Compilation:
    """``session`` makes another one of the same options, which writes its optimized graph to the file.

    ``any_size`` binds inputs of any size, where the graph takes those.
    """

    def operators() -> Operators:
        import onnx

        in_bytes = isinstance(graph, bytes)
        model = onnx.load_from_string(graph) if in_bytes else onnx.load_model(graph, load_external_data=False)
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "optimized.onnx"
            session(graph, file)
            optimized = onnx.load_model(file, load_external_data=False)
        return Operators(
            _nodes(model.graph.node), _nodes(optimized.graph.node), "nodes of the ONNX graph, and of the optimized one"
        )

    return _of_one_graph(operators, bind, any_size)


def _of_one_graph(operators: Callable[[], Operators], bind: Bind, any_size: Bind | None) -> Compilation:
    return Compilation(
        graphs=lambda: 1,
        operators=operators,
        bind=any_size,
        bind_as=lambda inputs, types: bind(_in_types(inputs, types)),
        fixed_types=_FIXED_TYPES,
        absent={"breaks": _ONE_GRAPH},
    )


def _in_types(inputs: Arrays, types: Types) -> Arrays:
    import ml_dtypes  # which the package onnx requires; NumPy has no bfloat16

    wanted = {"bfloat16": ml_dtypes.bfloat16}
    return {
        name: array.astype(wanted.get(types[name], types[name])) if name in types else array
        for name, array in inputs.items()
    }


def _nodes(nodes: Iterable[Any]) -> int:
    return sum(node.op_type not in _NO_KERNEL for node in nodes)


def compilation_of_openvino(model: Any, compiled: Any, bind: Bind, any_size: Bind | None) -> Compilation:
    def operators() -> Operators:
        before = [node.get_type_name() for node in model.get_ordered_ops()]
        after = [_layer(node) for node in compiled.get_runtime_model().get_ordered_ops()]
        return Operators(
            sum(kind not in _NO_KERNEL for kind in before),
            sum(kind not in _NO_KERNEL for kind in after),
            "operations of the model, and nodes that the plugin runs, without constants",
        )

    return _of_one_graph(operators, bind, any_size)


def _layer(node: Any) -> str:
    found = node.get_rt_info()["layerType"]
    return str(getattr(found, "value", found))
