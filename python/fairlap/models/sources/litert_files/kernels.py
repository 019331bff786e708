"""What LiteRT's own kernels answer, where they can without a delegate that computes in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph

# The first that have all operators of a file: some have no reference kernel, and others are known to XNNPACK alone.
_RESOLVERS = {
    "BUILTIN_REF": "LiteRT's reference kernels in float32",
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": "LiteRT's kernels in float32, without XNNPACK",
    "AUTO": "LiteRT itself with XNNPACK, in float32",
}


class Kernels:
    """In float32, whatever they are given: that is all that LiteRT has."""

    def __init__(self, graph: TfliteGraph, dtypes: Mapping[str, str]) -> None:
        self._graph, self._dtypes = graph, dtypes
        self._resolver, self.how = _first_that_runs(graph.packed())

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        interpreter = interpreter_of(self._graph.with_weights(weights), self._resolver)
        interpreter.allocate_tensors()
        run = interpreter.get_signature_runner()
        found = run(**{name: np.asarray(array).astype(self._dtypes[name]) for name, array in inputs.items()})
        return {name: np.array(found[name]) for name in self._graph.outputs}


def _first_that_runs(content: bytes) -> tuple[Any, str]:
    from ai_edge_litert.interpreter import OpResolverType

    *others, last = _RESOLVERS
    for name in others:
        resolver = getattr(OpResolverType, name)
        try:
            interpreter_of(content, resolver).allocate_tensors()
        except (ValueError, RuntimeError):  # an operator is missing
            continue
        return resolver, _RESOLVERS[name]
    return getattr(OpResolverType, last), _RESOLVERS[last]


def interpreter_of(content: bytes, resolver: Any, *, keeps_all: bool = False) -> Any:
    """Load a file; with ``keeps_all``, what is computed inside can be read afterwards."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(
        model_content=content, experimental_op_resolver_type=resolver, experimental_preserve_all_tensors=keeps_all
    )
