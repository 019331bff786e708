"""Gradients of an ONNX graph: the importer's operators in PyTorch, in float64, differentiated by ``torch.autograd``.

What the graph computes there is compared with its reference in NumPy when it is opened.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.build import ImportedModel, build
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.onnx_import.graph import PADDING, Graph
from fairlap.models.onnx_import.training import averages_of, in_training, why_no_batches
from fairlap.models.sources.contract import Learner, SourceError
from fairlap.models.sources.learning.loss import kind_of_loss, require_trusted_loss
from fairlap.models.sources.learning.torch_learner import (
    Own,
    as_contestants_have_them,
    as_returned,
    checked_loss,
    gradients_of,
    in_type,
    loss_of_returned,
)
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.source import Source

_DRAWING = "Dropout"


def learner_of_graph(file: Path, source: Source) -> Learner:
    """All floating-point arrays of the file are trained, but for the averages of its batch normalisation."""
    require_trusted_loss(source)
    graph = load_graph(file)
    averages = averages_of(graph)
    trained = tuple(name for name, array in graph.weights.items() if name not in averages and array.dtype == np.float32)
    how = "torch.autograd through fairlap's importer in float64"
    slopes = _SlopesOfGraph(graph, source, trained)
    why = _why_not_train(graph)
    return Learner(trained, slopes, slopes.outputs, how, why, unused_are_constants=True, padding=_padding(graph))


def _padding(graph: Graph) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for node in (node for each in graph.graphs() for node in each.nodes if PADDING in node.attributes):
        found[node.inputs[0]] = (*found.get(node.inputs[0], ()), node.attributes[PADDING])
    return found


def _why_not_train(graph: Graph) -> str:
    if any(node.operator == _DRAWING for each in graph.graphs() for node in each.nodes):
        return f"its {_DRAWING} would draw random numbers in training, and the file has it for inference"
    return why_no_batches(graph)


class _SlopesOfGraph:
    def __init__(self, graph: Graph, source: Source, trained: tuple[str, ...]) -> None:
        self._graph, self._source, self._trained = graph, source, trained
        self._in_training, self._moved = (graph, {}) if why_no_batches(graph) else in_training(graph)
        self._models: dict[tuple[str, bool], ImportedModel] = {}

    def _model(self, floats: str, *, training: bool = False) -> ImportedModel:
        key = (floats, training)
        if key not in self._models:
            try:
                self._models[key] = build(self._in_training if training else self._graph, "torch", floats=floats)
            except ModuleNotFoundError:
                raise SourceError("gradients of an ONNX file are computed with PyTorch; install torch") from None
        return self._models[key]

    def __call__(self, weights: Arrays, batch: Batch, training: bool) -> Slopes:
        wide = any(array.dtype == np.float64 for array in weights.values())
        model = self._model("float64" if wide else "float32", training=training)
        import torch

        def tensor(array: Any) -> Any:
            return torch.tensor(np.array(array))

        held = {name: tensor(array) for name, array in weights.items()}
        for name in self._trained:
            held[name].requires_grad_(True)
        found = model(held, {name: tensor(array) for name, array in batch.inputs.items()})
        labels = None if batch.labels is None else as_contestants_have_them(tensor(batch.labels), wide=wide)
        outputs = [found[each.name] for each in self._graph.outputs]
        with in_type(wide=wide):
            loss = loss_of_returned(as_returned(outputs), labels, kind_of_loss(self._source.loss), self._own)
            gradients = gradients_of(loss, [held[name] for name in self._trained])
        by_name = zip(self._trained, gradients, strict=True)
        return Slopes(
            float(loss.detach()),
            {name: (torch.zeros_like(held[name]) if each is None else each).numpy() for name, each in by_name},
            {name: found[after].detach().numpy() for name, after in self._moved.items()} if training else {},
        )

    @cached_property
    def _own(self) -> Own | None:
        return checked_loss(self._source)

    def outputs(self, weights: Arrays, inputs: Arrays) -> dict[str, Any]:
        import torch

        def tensors(arrays: Arrays) -> dict[str, Any]:
            return {name: torch.tensor(np.array(array)) for name, array in arrays.items()}

        with torch.no_grad():
            found = self._model("float64")(tensors(weights), tensors(inputs))
        return {each.name: found[each.name].numpy() for each in self._graph.outputs}
