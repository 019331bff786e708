"""What LiteRT's own kernels answer, where they can without a delegate that computes in another order."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.litert_files.tflite_graph import TfliteGraph

# In this order: some operators have no reference kernel, and others are known to XNNPACK alone.
_RESOLVERS = {
    "BUILTIN_REF": "LiteRT's reference kernels",
    "BUILTIN_WITHOUT_DEFAULT_DELEGATES": "LiteRT's kernels, without XNNPACK",
    "AUTO": "LiteRT itself with XNNPACK",
}


class Kernels:
    """In the types of the file, whatever they are given: that is all that LiteRT has."""

    def __init__(self, graph: TfliteGraph, dtypes: Mapping[str, str], resolver: str = "") -> None:
        self._graph, self.dtypes = graph, dtypes
        name = resolver or kernels_for(graph)[0]
        self._resolver, how = _resolver_of(name), _RESOLVERS[name]
        self.how = how if graph.is_quantized else f"{how} in float32"

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        return self._run(interpreter_of(self._graph.with_weights(weights), self._resolver), inputs)

    def with_own_weights(self, _: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        return self._run(interpreter_of(self._graph.packed(), self._resolver), inputs)

    def inside(self, inputs: Arrays) -> dict[int, np.ndarray]:
        """All values of the main graph, by place."""
        interpreter = interpreter_of(self._graph.packed(), self._resolver, keeps_all=True)
        self._run(interpreter, inputs)
        main, found = self._graph.main, {}
        places = {place for each in main.operators() for place in (*each.inputs, *each.results) if place >= 0}
        for place in places.union(main.place_of(tensor) for tensor in self._graph.inputs.values()):
            with suppress(ValueError):  # of a tensor that nothing needs
                found[place] = interpreter.get_tensor(place, main.number)
        return found

    def _run(self, interpreter: Any, inputs: Arrays) -> dict[str, np.ndarray]:
        interpreter.allocate_tensors()
        run = interpreter.get_signature_runner()
        found = run(**{name: np.asarray(array).astype(self.dtypes[name]) for name, array in inputs.items()})
        return {name: np.array(found[name]) for name in self._graph.outputs}


def kernels_for(graph: TfliteGraph) -> list[str]:
    """Name those of LiteRT's kernels that have all operators of a file; LiteRT itself where no others have them."""
    content, (*others, last) = graph.packed(), _RESOLVERS
    found = []
    for name in others:
        try:
            interpreter_of(content, _resolver_of(name)).allocate_tensors()
        except (ValueError, RuntimeError):  # an operator is missing
            continue
        found.append(name)
    return found or [last]


def _resolver_of(name: str) -> Any:
    from ai_edge_litert.interpreter import OpResolverType

    return getattr(OpResolverType, name)


def interpreter_of(content: bytes, resolver: Any, *, keeps_all: bool = False) -> Any:
    """Load a file; with ``keeps_all``, what is computed inside can be read afterwards."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(
        model_content=content, experimental_op_resolver_type=resolver, experimental_preserve_all_tensors=keeps_all
    )
