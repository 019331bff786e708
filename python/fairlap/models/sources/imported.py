"""An ONNX graph in PyTorch, JAX and TensorFlow through fairlap's importer.

It has the functions of a built-in model's module for that framework, and holds the weights by the graph's names.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.models.arrays import Arrays
from fairlap.models.onnx_import.build import ImportedModel, build, in_type_of_file
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.onnx_import.graph import Array, Graph
from fairlap.models.onnx_import.libraries.lossy_sums import LossySums
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary, is_floating
from fairlap.models.onnx_import.libraries.rounding_library import InTypesOfFile, OnOtherEdges, WithRoundings
from fairlap.models.onnx_import.operators.layers.recurrent import DYNAMIC_STEPS
from fairlap.models.onnx_import.operators.quantization import LIMITS, ROUNDING
from fairlap.models.onnx_import.operators.table import EXACT
from fairlap.models.onnx_import.training import averages_of, in_training, why_no_batches
from fairlap.models.sources.contract import Forward, RightAnswers, RoundingsInside
from fairlap.models.sources.onnx_graphs.graphs_by_size import GraphsBySize, OtherSizes
from fairlap.request.work import Precision

_DRAWS_OF_ROUNDINGS = 3
_FEW_BITS = ("float16", "bfloat16")
_FLOATS: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}
IMPORTED = "from ONNX by fairlap's importer"

LossOfOutputs = Callable[[Sequence[Any], Any], Any]
"""A user's loss, of a model's outputs in its order and of the labels."""


def imported_reference(file: Path) -> tuple[Graph, Forward]:
    """Build the float64 reference, and raise FairlapError for operators that the importer lacks."""
    graph = load_graph(file)
    return graph, _at_sizes_that_fit(of_file(build(graph, "numpy")))


def _at_sizes_that_fit(forward: Forward) -> Forward:
    """Refuse sizes that an operator cannot take, such as of an image that is smaller than a kernel inside of an If."""

    def computed(weights: Arrays, inputs: Arrays) -> Mapping[str, Any]:
        try:
            return forward(weights, inputs)
        except (ValueError, IndexError) as error:
            raise FairlapError(
                f"its operators do not take inputs of these sizes: {described(error)}; give others with --dims or "
                "--shapes",
                code="E_SHAPES",
            ) from error

    return computed


def imported_in_float32(graph: Graph) -> Forward:
    """As a right framework computes it, one operation after the other."""
    return of_file(ImportedModel(graph, NumPyLibrary(wide=False)))


def roundings_inside(graph: Graph) -> RoundingsInside:
    """Move answers by what float32 may lose in each operation of a graph."""

    @cache
    def built() -> tuple[LossySums, Forward]:
        library = LossySums()
        return library, of_file(ImportedModel(graph, library))

    def movements(weights: Arrays, inputs: Arrays, exact: Arrays, draws: int) -> Sequence[Arrays]:
        library, forward = built()
        found = []
        for seed in range(draws):
            library.seed = seed
            moved = _in_float64(forward(weights, inputs))
            same = [name for name, each in exact.items() if moved[name].shape == each.shape]
            found.append({name: np.abs(moved[name] - exact[name]) for name in same})
        return found

    return movements


def roundings_inside_export(file: Path) -> RoundingsInside:
    """Move the answers of the graph that a module was exported to, with its own weights."""

    @cache
    def read() -> tuple[Arrays, Forward, RoundingsInside] | None:
        try:
            graph = load_graph(file) if file.is_file() else None
        except FairlapError:
            return None
        return None if graph is None else (graph.weights, of_file(build(graph, "numpy")), roundings_inside(graph))

    def movements(_weights: Arrays, inputs: Arrays, _exact: Arrays, draws: int) -> Sequence[Arrays] | None:
        if (found := read()) is None:
            return None
        weights, forward, inside = found
        return inside(weights, inputs, _in_float64(forward(weights, inputs)), draws)

    return movements


def _in_float64(answers: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(each).astype(np.float64) for name, each in answers.items()}


class InFloat32(Mapping[str, Array]):
    """Weights that the file has in fewer bits, in float32 when they are read; those of float64 stay, and are refused.

    So one array at a time is held twice.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        array = self._arrays[name]
        return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def right_answers(graph: Graph, types: Sequence[str]) -> RightAnswers:
    """As right frameworks compute a graph of these types, which are of few bits."""
    draws = range(_DRAWS_OF_ROUNDINGS)
    floats = [InTypesOfFile()] if set(types) & set(_FEW_BITS) else []
    edges = [OnOtherEdges(seed) for seed in draws] if set(types) - set(_FEW_BITS) else []
    rounded = [*(WithRoundings(seed) for seed in draws), *floats]
    return RightAnswers(
        tuple(of_file(ImportedModel(graph, each)) for each in rounded),
        tuple(of_file(ImportedModel(graph, each)) for each in edges),
    )


def of_file(model: ImportedModel) -> Forward:
    """Take weights in float32 or float64, and compute with those of fewer bits that the file has."""

    def forward(weights: Arrays, inputs: Arrays) -> Mapping[str, Any]:
        return model(_AsInFile(weights, model.graph.weights), inputs)

    return forward


class _AsInFile(Mapping[str, Array]):
    """``own`` are the file's, for their types."""

    def __init__(self, weights: Arrays, own: Mapping[str, Array]) -> None:
        self._weights, self._own = weights, own

    def __getitem__(self, name: str) -> Array:
        dtype, array = self._own[name].dtype, self._weights[name]
        return in_type_of_file(array, dtype) if is_floating(dtype) else np.rint(array).astype(dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def computes_in(graph: Graph) -> tuple[str, ...]:
    """Name the types of few bits that the file rounds to: sixteen bits, and steps of integers.

    Weights that are held in few bits and made float32 before anything is computed are none.
    """
    floats, steps = set(), set()
    for each, node in ((own, node) for own in graph.graphs() for node in own.nodes):
        types = {each.values[name].dtype for name in node.outputs if name in each.values}
        if node.operator in ROUNDING:
            steps |= types.intersection(LIMITS)
        if node.attributes.get(DYNAMIC_STEPS):
            steps.add("uint8")
        if node.operator not in EXACT:
            floats |= types.intersection(_FEW_BITS)
    return (*sorted(floats), *sorted(steps))


def own_types(graph: Graph) -> tuple[str, ...]:
    """Name the types of few bits in which the file computes or holds weights."""
    held = {str(array.dtype) for array in graph.weights.values()}
    return tuple(sorted(held.intersection(_FEW_BITS).union(computes_in(graph))))


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

    if all(name.isidentifier() for name in inputs):  # the adapter then hands them over by place, which is quicker
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in ("self", *inputs)]
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
