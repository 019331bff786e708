"""An ONNX graph in PyTorch, JAX and TensorFlow through fairlap's importer.

It has the functions of a built-in model's module for that framework, and holds the weights by the graph's names.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.build import ImportedModel, build
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.onnx_import.graph import Graph
from fairlap.models.onnx_import.training import averages_of, in_training, why_no_batches
from fairlap.models.sources.onnx_graphs.graphs_by_size import GraphsBySize, OtherSizes
from fairlap.request.work import Precision

_FLOATS: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}
IMPORTED = "from ONNX by fairlap's importer"

LossOfOutputs = Callable[[Sequence[Any], Any], Any]
"""A user's loss, of a model's outputs in its order and of the labels."""


class OnnxOnDisk:
    """For frameworks that read ONNX themselves. Of an encoder-decoder, the file has a step of the decoder."""

    def __init__(self, file: Path, *, takes_other_sizes: bool = False, encoder: Path | None = None) -> None:
        self.file, self.takes_other_sizes, self.encoder = file, takes_other_sizes, encoder


class Imported:
    """``conversion_s`` grows while the graph is read and built; importing the framework is not part of it.

    ``own`` is for a graph that was converted, whose weights have other names than the model's. ``weight_names`` are
    the model's names by those of the graph, where they are known; other arrays of the graph are then constants. With
    ``other_sizes``, calls may have those too. ``by_batch`` is for a graph whose batch normalisation is by the batch in
    training, and moves its averages. ``loss`` makes the user's own.
    """

    def __init__(
        self,
        graph: Graph,
        framework: Any,
        *,
        own: bool = False,
        weight_names: Mapping[str, str] | None = None,
        other_sizes: OtherSizes | None = None,
        by_batch: bool = False,
        loss: Callable[[], LossOfOutputs] | None = None,
    ) -> None:
        began_s = time.monotonic()
        self._graph = graph
        self._own = own
        moves = by_batch and bool(averages_of(self._graph)) and not why_no_batches(self._graph)
        self._training, self._moved = in_training(self._graph) if moves else (self._graph, {})
        self._weight_names = weight_names
        self._names = [tensor.name for tensor in self._graph.outputs]
        self._framework = framework
        self._floats = "float32"
        self._make_loss = loss
        self._loss: LossOfOutputs | None = None
        self._other_sizes = other_sizes
        self._by_size: GraphsBySize | None = None
        self._model: ImportedModel | None = None
        self._in_training: ImportedModel | None = None  # where it is another
        self._constants: dict[str, Any] | None = None
        self.conversion_s = time.monotonic() - began_s

    @classmethod
    def from_file(cls, file: Path, framework: Any, **given: Any) -> Imported:
        """Read the graph first, as part of the conversion."""
        began_s = time.monotonic()
        graph = load_graph(file)
        read_s = time.monotonic() - began_s
        found = cls(graph, framework, **given)
        found.conversion_s += read_s
        return found

    @property
    def takes_other_sizes(self) -> bool:
        return self._other_sizes is not None

    def _built(self) -> ImportedModel:
        if self._model is None:
            began_s = time.monotonic()
            self._model = build(self._graph, self._framework, floats=self._floats)
            if self._other_sizes is not None:
                self._by_size = self._other_sizes.graphs(self._model, self._framework, self._floats)
            if self._make_loss is not None:
                self._loss = self._make_loss()
            if self._moved:
                self._in_training = build(self._training, self._framework, floats=self._floats)
            self.conversion_s += time.monotonic() - began_s
        return self._model

    def hold_in(self, precision: Precision) -> None:
        """Hold the graph's casts and constants in the type of the weights."""
        self._floats = _FLOATS.get(precision, "float32")

    def build(self, weights: Arrays, dtype: Any = None) -> Any:
        """Build a PyTorch or a TensorFlow module."""
        held = self.params(weights)
        function = self._function()
        in_training, moved = (self._in_training or function), self._moved
        if self._framework == "torch":
            inputs = [each.name for each in self._graph.inputs]
            module = torch_module(function, held, inputs, self._names, in_training, moved, self._loss)
            module.graphs_by_size = 0 if self._by_size is None else len(self._by_size)
            return module
        return _tensorflow_module(function, held, self._names, in_training, moved, self._loss)

    def params(self, weights: Arrays) -> dict[str, Any]:
        model = self._built()
        if self._weight_names is None:
            return model.prepare(self._graph.weights if self._own else weights)
        names = self._weight_names
        prepared = model.prepare(
            {name: weights.get(names.get(name, ""), own) for name, own in self._graph.weights.items()}
        )
        if self._constants is None:  # here, since in a trace of JAX they would belong to the trace
            self._constants = {name: array for name, array in prepared.items() if name not in names}
        unused = {own: array for own, array in weights.items() if own not in names.values()}
        return {**{own: prepared[name] for name, own in names.items()}, **unused}

    def forward(
        self, params: Mapping[str, Any], inputs: Mapping[str, Any], statistics: dict[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """Compute the outputs; in training, where ``statistics`` take the new averages of batch normalisation."""
        if statistics is None or self._in_training is None:
            found = self._function()(params, inputs)
        else:
            found = self._in_training(params, inputs)
            statistics |= {name: found[after] for name, after in self._moved.items()}
        return tuple(found[name] for name in self._names)

    def own_loss(
        self,
        params: Mapping[str, Any],
        inputs: Mapping[str, Any],
        labels: Any,
        statistics: dict[str, Any] | None = None,
    ) -> Any:
        assert self._loss is not None
        return self._loss(self.forward(params, inputs, statistics), labels)

    def _function(self) -> Callable[..., Mapping[str, Any]]:
        """Take weights by the names that the model has for them."""
        model, names = self._built(), self._weight_names
        if names is None:
            return model if self._by_size is None else self._by_size
        constants = self._constants or {}

        def function(held: Mapping[str, Any], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            return model({**constants, **{name: held[own] for name, own in names.items()}}, inputs)

        return function

    def canonical(self, held: Any, array: Any = None) -> Any:
        """Back to the layout of the file: of a weight by its name, or of all parameters."""
        model = self._built()
        in_graph = {own: name for name, own in (self._weight_names or {}).items()}
        if array is None:
            return {name: model.original(in_graph.get(name, name), np.asarray(each)) for name, each in held.items()}
        return model.original(in_graph.get(held, held), array)


def torch_module(
    function: Callable[..., Mapping[str, Any]],
    weights: Mapping[str, Any],
    inputs: list[str],
    outputs: list[str],
    in_training: Callable[..., Mapping[str, Any]],
    moved: Mapping[str, str],
    loss: LossOfOutputs | None = None,
) -> Any:
    """Wrap ``function``, which takes weights and inputs by name, in a module.

    The module takes inputs by name or in their order. ``in_training`` is called in its place in training, and returns
    the new values of weights that are ``moved``, too.
    """
    import torch

    class Module(torch.nn.Module):
        """Parameters have numbers, since PyTorch's names cannot hold every character that the graph's have."""

        def __init__(self) -> None:
            super().__init__()
            self._places = {name: f"weight_{number}" for number, name in enumerate(weights)}
            for name, place in self._places.items():
                self.register_parameter(place, torch.nn.Parameter(weights[name], requires_grad=False))

        def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {name: getattr(self, place).detach() for name, place in self._places.items()}

        def named_parameters(self, *_: Any, **__: Any) -> Iterator[tuple[str, Any]]:
            return ((name, getattr(self, place)) for name, place in self._places.items())

        def forward(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
            held = {name: getattr(self, place) for name, place in self._places.items()}
            given = {**dict(zip(inputs, arguments, strict=False)), **named}
            found = (in_training if self.training else function)(held, given)
            with torch.no_grad():
                for name, after in moved.items() if self.training else ():
                    held[name].copy_(found[after])
            return tuple(found[name] for name in outputs)

        def own_loss(self, labels: Any, *arguments: Any, **named: Any) -> Any:
            assert loss is not None
            return loss(self(*arguments, **named), labels)

    # The adapter then hands them over by place, which is quicker.
    if all(name.isidentifier() and not iskeyword(name) for name in inputs):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        first = "self" if "self" not in inputs else "_".join((*inputs, "self"))
        parameters = [inspect.Parameter(name, kind) for name in (first, *inputs)]
        Module.forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Module().eval()


def _tensorflow_module(
    function: Callable[..., Mapping[str, Any]],
    weights: Mapping[str, Any],
    outputs: list[str],
    in_training: Callable[..., Mapping[str, Any]],
    moved: Mapping[str, str],
    loss: LossOfOutputs | None,
) -> Any:
    import tensorflow as tf

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.variables_by_name = {name: tf.Variable(array) for name, array in weights.items()}

        def __call__(self, inputs: Mapping[str, Any], *, training: bool = False) -> tuple[Any, ...]:
            found = (in_training if training else function)(self.variables_by_name, inputs)
            for name, after in moved.items() if training else ():
                self.variables_by_name[name].assign(found[after])
            return tuple(found[name] for name in outputs)

        def own_loss(self, labels: Any, inputs: Mapping[str, Any], *, training: bool = False) -> Any:
            assert loss is not None
            return loss(self(inputs, training=training), labels)

    return Module()
