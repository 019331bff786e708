"""The graphs in NumPy, in the precision of the weights."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
from fairlap.bench_models.graphs.onnx_model import graph_at
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.build import ImportedModel
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary
from fairlap.models.sources.contract import Forward
from fairlap.models.sources.imported import of_file


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._spec_module = spec.__name__

    def forward(self, weights: Arrays, inputs: Arrays) -> Arrays:
        batch = len(next(iter(inputs.values())))
        wide = any(array.dtype == np.float64 for array in weights.values())
        return _forward_at(self._spec_module, batch, wide)(weights, inputs)


@cache
def _forward_at(spec_module: str, batch: int, wide: bool) -> Forward:
    graph = graph_at(spec_module, batch)
    compute = of_file(ImportedModel(graph, NumPyLibrary(wide=wide)))

    def forward(weights: Arrays, inputs: Arrays) -> Arrays:
        return compute({**graph.weights, **weights}, inputs)  # the graph's own arrays are constants

    return forward
