"""The graphs in TensorFlow, through fairlap's importer."""

from __future__ import annotations

from types import ModuleType

from fairlap.bench_models.graphs.onnx_model import graph_at
from fairlap.models.sources.imported import IMPORTED, Imported


class Implementation:
    ROUTE = IMPORTED

    def __init__(self, spec: ModuleType) -> None:
        self._spec_module = spec.__name__
        self._weights = {each.name: each.name for each in spec.SPEC.weights}

    def for_batch(self, batch: int) -> Imported:
        return Imported(graph_at(self._spec_module, batch), "tensorflow", weight_names=self._weights)
