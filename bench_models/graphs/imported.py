"""The graphs in frameworks into which fairlap's importer brings them."""

from __future__ import annotations

from typing import ClassVar

from fairlap.bench_models.graphs.net import GraphModel
from fairlap.bench_models.graphs.onnx_model import graph_at
from fairlap.models.onnx_import.build import LibraryName
from fairlap.models.sources.imported import IMPORTED, Imported


class FromGraph:
    """``for_batch`` has the functions of a model's module for the framework."""

    ROUTE = IMPORTED
    framework: ClassVar[LibraryName]

    def __init__(self, model: GraphModel) -> None:
        self._model = model
        self._weights = {each.name: each.name for each in model.SPEC.weights}

    def for_batch(self, batch: int) -> Imported:
        return Imported(graph_at(self._model, batch), self.framework, weight_names=self._weights, by_batch=True)
