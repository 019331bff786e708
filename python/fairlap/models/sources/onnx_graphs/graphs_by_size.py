"""One imported graph for each size of calls, since the importer computes shapes when it builds.

A call picks the graph of its inputs' sizes. Compilers see sizes that are fixed, and compile each graph once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlap.models.onnx_import.build import ImportedModel, LibraryName, build
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.sources.contract import SourceError

OPEN = "open.onnx"
"""In the folder of a source whose calls change their size: the graph with the sizes that its file leaves open."""


@dataclass(frozen=True)
class OtherSizes:
    """Besides the one at which a graph was bound."""

    file: Path  # with open sizes
    dims: Sequence[Mapping[str, int]]

    def graphs(self, first: ImportedModel, framework: LibraryName, floats: str) -> GraphsBySize:
        others = [build(load_graph(self.file, dimensions=each), framework, floats=floats) for each in self.dims]
        return GraphsBySize(first, others)


class GraphsBySize:
    """A function of weights and inputs, as an imported model is. The weights are those that ``first`` prepares."""

    def __init__(self, first: ImportedModel, others: Sequence[ImportedModel]) -> None:
        self._inputs = [tensor.name for tensor in first.graph.inputs]
        self._by_sizes = {}
        for model in (first, *others):
            if not model.takes_weights_of(first):
                raise SourceError("its weights are laid out otherwise at some of these sizes, so no model takes all")
            self._by_sizes[tuple([tuple(tensor.shape) for tensor in model.graph.inputs])] = model

    def __len__(self) -> int:
        return len(self._by_sizes)

    def __call__(self, weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        sizes = tuple([tuple(inputs[name].shape) for name in self._inputs])
        return self._by_sizes[sizes](weights, inputs)
