"""What LiteRT's own kernels answer, without a delegate that computes in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph


class Kernels:
    """In float32, whatever they are given: that is all that LiteRT has. Some operators have no reference kernel."""

    def __init__(self, graph: TfliteGraph, dtypes: Mapping[str, str]) -> None:
        from ai_edge_litert.interpreter import OpResolverType

        self._graph, self._dtypes = graph, dtypes
        self._resolver, self.how = OpResolverType.BUILTIN_REF, "LiteRT's reference kernels in float32"
        try:
            interpreter_of(graph.packed(), self._resolver)
        except ValueError:
            self._resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            self.how = "LiteRT's kernels in float32, without XNNPACK"

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        interpreter = interpreter_of(self._graph.with_weights(weights), self._resolver)
        interpreter.allocate_tensors()
        run = interpreter.get_signature_runner()
        found = run(**{name: np.asarray(array).astype(self._dtypes[name]) for name, array in inputs.items()})
        return {name: np.array(found[name]) for name in self._graph.outputs}


def interpreter_of(content: bytes, resolver: Any, *, keeps_all: bool = False) -> Any:
    """Load a file; with ``keeps_all``, what is computed inside can be read afterwards."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(
        model_content=content, experimental_op_resolver_type=resolver, experimental_preserve_all_tensors=keeps_all
    )
