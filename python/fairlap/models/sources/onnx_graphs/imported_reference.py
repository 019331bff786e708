"""An ONNX graph in NumPy: its float64 reference, what rounding inside of it moves, and the types of few bits in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.models.arrays import Arrays
from fairlap.models.fp8_graphs.fp8_numbers import FP8
from fairlap.models.onnx_import.build import ImportedModel, build, in_type_of_file
from fairlap.models.onnx_import.files.load import load_graph
from fairlap.models.onnx_import.graph import Array, Graph, Node
from fairlap.models.onnx_import.libraries.lossy_sums import LossySums
from fairlap.models.onnx_import.libraries.numpy_library import is_floating
from fairlap.models.onnx_import.libraries.plain_float32 import PlainFloat32
from fairlap.models.onnx_import.libraries.rounding_library import (
    InTypesOfFile,
    OnOtherEdges,
    WithoutDynamicSteps,
    WithRoundings,
)
from fairlap.models.onnx_import.operators.layers.recurrent import DYNAMIC_STEPS
from fairlap.models.onnx_import.operators.quantization import LIMITS, ROUNDING
from fairlap.models.onnx_import.operators.table import EXACT
from fairlap.models.sources.contract import Forward, RightAnswers, RoundingsInside

_DRAWS_OF_ROUNDINGS = 3
_FEW_BITS = ("float16", "bfloat16")


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
    return of_file(ImportedModel(graph, PlainFloat32()))


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
    dynamic = (
        [WithoutDynamicSteps()] if any(_is_dynamic(node) for each in graph.graphs() for node in each.nodes) else []
    )
    rounded = [*(WithRoundings(seed) for seed in draws), *floats, *dynamic]
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
            steps |= types.intersection((*LIMITS, FP8))
        if _is_dynamic(node):
            steps.add("uint8")
        if node.operator not in EXACT:
            floats |= types.intersection(_FEW_BITS)
    return (*sorted(floats), *sorted(steps))


def _is_dynamic(node: Node) -> bool:
    """Whether it rounds to steps that it chooses in each call."""
    return node.operator == "DynamicQuantizeLinear" or bool(node.attributes.get(DYNAMIC_STEPS))


def own_types(graph: Graph) -> tuple[str, ...]:
    """Name the types of few bits in which the file computes or holds weights."""
    held = {str(array.dtype) for array in graph.weights.values()}
    return tuple(sorted(held.intersection((*_FEW_BITS, FP8)).union(computes_in(graph))))
