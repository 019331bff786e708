"""The graph of a LiteRT file in ONNX, for the float64 reference and for frameworks that read no such file.

What a file computes is what LiteRT makes of it, so a translation counts only where its answers are LiteRT's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.litert_files.kernels import interpreter_of
from fairlap.models.sources.litert_files.operation import OnnxGraph, Operation, Untranslated
from fairlap.models.sources.litert_files.operators import READS, TRANSLATIONS
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph

_OPSET, _IR_VERSION = 17, 9
_MOST_NAMED = 3


def onnx_model(graph: TfliteGraph) -> Any:
    """Translate a graph whose sizes are bound and whose weights are in float32; raise Untranslated with the reason."""
    from onnx import helper, numpy_helper

    if graph.has_several_parts:
        raise Untranslated("a file with graphs inside of its graph has no translation to ONNX")
    needed = _needed(graph)
    if missing := sorted({kind for kind, *_ in needed} - set(TRANSLATIONS)):
        named = ", ".join(missing[:_MOST_NAMED]) + " and others" * (len(missing) > _MOST_NAMED)
        raise Untranslated(f"{named} has no translation to ONNX")
    if set(graph.inputs) & set(graph.outputs):
        raise Untranslated("an input and an output have one name")
    shapes, onnx = _shapes(graph), OnnxGraph()
    names = {graph.place_of(tensor): name for name, tensor in graph.inputs.items()}
    for kind, options, inputs, result in needed:
        translated = Operation(kind, options, inputs, result, graph, shapes, names, onnx)
        try:
            names[result] = TRANSLATIONS[kind](translated)
        except (AttributeError, IndexError, TypeError, ValueError) as error:  # of what LiteRT does not verify
            raise Untranslated(f"{kind}: {error}") from None
    for name, tensor in graph.outputs.items():
        place = graph.place_of(tensor)
        if place not in names:
            raise Untranslated(f"nothing computes the output {name}")
        onnx.node("Identity", [names[place]], [name])

    def described(tensors: Mapping[str, Any]) -> list[Any]:
        return [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(np.dtype(graph.dtype(tensor))),
                shapes[graph.place_of(tensor)],
            )
            for name, tensor in tensors.items()
        ]

    made = helper.make_graph(
        onnx.nodes,
        "from LiteRT",
        described(graph.inputs),
        described(graph.outputs),
        [numpy_helper.from_array(array, name) for name, array in onnx.initializers.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)


def _needed(graph: TfliteGraph) -> list[tuple[str, Any, tuple[int, ...], int]]:
    """List the operators that the outputs depend on, in the order in which they run."""
    wanted = {graph.place_of(tensor) for tensor in graph.outputs.values()}
    found = []
    for kind, options, inputs, results in reversed(list(graph.operations())):
        if not wanted.intersection(results):
            continue
        if len(results) != 1:
            raise Untranslated(f"{kind} has {len(results)} results")
        wanted.update(inputs[place] for place in READS.get(kind, range(len(inputs))) if place < len(inputs))
        found.append((kind, options, inputs, results[0]))
    return found[::-1]


def _shapes(graph: TfliteGraph) -> list[tuple[int, ...]]:
    """Of all tensors, as LiteRT finds them when it runs."""
    from ai_edge_litert.interpreter import OpResolverType

    interpreter = interpreter_of(graph.packed(), OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, keeps_all=True)
    interpreter.allocate_tensors()
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
    interpreter.invoke()  # some shapes are computed
    found: list[tuple[int, ...]] = [()] * (1 + max(each["index"] for each in interpreter.get_tensor_details()))
    for each in interpreter.get_tensor_details():
        found[each["index"]] = tuple(int(size) for size in each["shape"])
    return found


def why_other_answers(translated: Arrays, own: Arrays, agrees: float) -> str:
    """Why they are not of the same model; empty where they are within a share of the largest number."""
    for name, array in own.items():
        if translated[name].shape != array.shape:
            return f"{name} is {list(translated[name].shape)} in ONNX and {list(array.shape)} in LiteRT"
        off, largest = np.abs(translated[name] - array).max(initial=0.0), np.abs(array).max(initial=0.0)
        if not off <= agrees * largest:
            return f"{name} is off by {off:.1e} in ONNX, and its largest number is {largest:.1e}"
    return ""
