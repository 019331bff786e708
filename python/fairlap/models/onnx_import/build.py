"""Turn a graph into a function of weights and inputs in NumPy, PyTorch, JAX or TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fairlap import quantity_text
from fairlap.errors import FairlapError, described
from fairlap.models.onnx_import.errors import ModelFileInvalid
from fairlap.models.onnx_import.evaluation import attributes_of, evaluate
from fairlap.models.onnx_import.fusion import fused
from fairlap.models.onnx_import.graph import Array, Graph, Node, Tensor
from fairlap.models.onnx_import.layout import LayoutPlan, Step, kernel_order, turned_weights
from fairlap.models.onnx_import.libraries.base import Library
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary
from fairlap.models.onnx_import.operators.table import OPERATORS
from fairlap.models.onnx_import.straight_line import Function, straight_line

LibraryName = Literal["numpy", "torch", "jax", "tensorflow"]
MOST_COMPUTED = 2**24  # elements of a constant that is computed when building
_KEPT_BYTES = 2**26  # of weights, between the steps of the reference that use them


class ImportedModel:
    """A pure function of weights and inputs, both by name. It traces as plain calls of the library.

    Weights are passed as `prepare` gives them: by the names that the file gives them, in the layout that the library
    computes in. A body of control flow gets weights as inputs, of which some may be ``turned`` to that layout.
    """

    def __init__(
        self, graph: Graph, library: Library, turned: Set[str] = frozenset(), *, is_body: bool = False
    ) -> None:
        self.graph, self.library = graph, library
        known = dict(graph.constants)
        nodes = _without_known(graph, graph.nodes, known)
        values: Mapping[str, Tensor] = graph.values
        if library.name != "numpy":  # the reference computes the graph as the file has it
            nodes, values = fused(nodes, graph, known)
        only_turned = turned_weights(nodes, graph.weights)
        self._turned = turned | (only_turned if library.channels_last else set())
        self._kernels = {name for name in only_turned if graph.weights[name].ndim > 2}
        self._values = values
        plan = LayoutPlan(library, values, self._turned)
        for node in nodes:
            attributes, inputs = attributes_of(node, known, values, graph.opset)
            held = {name: _held(value, library, self._turned) for name, value in attributes.items()}
            plan.add(node, OPERATORS[node.operator], held, inputs)
        self._outputs = tuple((tensor.name, plan.in_file(tensor.name)) for tensor in graph.outputs)
        steps = plan.steps if library.leave is None else [_rounding(step, library, values) for step in plan.steps]
        self.steps, self._last_uses = _with_last_uses(steps, {name for _, name in self._outputs})
        self._weights_used = [
            tuple(name for name in dict.fromkeys(each.inputs) if name in graph.weights) for each in self.steps
        ]
        used = {name for step in self.steps for name in step.inputs} | {name for _, name in self._outputs}
        exact = isinstance(library, NumPyLibrary) and library.wide
        self._constants = {
            name: library.constant(array if exact else _in_range(array.astype(graph.values[name].dtype), library))
            for name, array in known.items()
            if name in used
        }
        if library.widens and not is_body:
            self._compute: Function = self._computed_in_turn
        else:
            self._compute = straight_line(
                self.steps,
                self._last_uses,
                self._constants,
                [tensor.name for tensor in graph.inputs],
                list(graph.weights),
                [name for _, name in self._outputs],
                None if is_body else library.enter,
            )

    def __call__(self, weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        self.library.begin()
        found = self._compute(inputs, weights)
        return dict(zip((name for name, _ in self._outputs), found, strict=True))

    def of_arrays(self, *arrays: Any) -> tuple[Any, ...]:
        """Compute a body of control flow: inputs and outputs are the library's, by place."""
        return self._compute(dict(zip((tensor.name for tensor in self.graph.inputs), arrays, strict=True)), {})

    def _computed_in_turn(self, inputs: Mapping[str, Any], weights: Mapping[str, Any]) -> tuple[Any, ...]:
        """Compute the same, with each weight held only while a step uses it.

        One that a later step uses as well is kept for it where it is small.
        """
        enter, kept = self.library.enter, dict[str, int]()
        values = {tensor.name: enter(inputs[tensor.name]) for tensor in self.graph.inputs} | self._constants
        for step, finished, used in zip(self.steps, self._last_uses, self._weights_used, strict=True):
            entered = [name for name in used if name not in values]
            try:
                for name in entered:
                    values[name] = enter(weights[name])
                results = step.function(*[values[name] if name else None for name in step.inputs])
            except MemoryError as error:
                raise MemoryError(self._needed_for(step)) from error
            values.update(zip(step.outputs, results if isinstance(results, (tuple, list)) else (results,)))  # noqa: B905
            del results  # the next step is computed without those that nothing uses any more
            for name in finished:
                del values[name]
                kept.pop(name, None)
            for name in entered:
                if name in values and sum(kept.values()) + values[name].nbytes <= _KEPT_BYTES:
                    kept[name] = values[name].nbytes
                else:
                    values.pop(name, None)
        for _, name in self._outputs:
            if name not in values:
                values[name] = enter(weights[name])
        return tuple(values[name] for _, name in self._outputs)

    def _needed_for(self, step: Step) -> str:
        sizes = [self._values[name].size for name in (*step.inputs, *step.outputs) if name in self._values]
        return f"{step.outputs[0]} and what it is computed of take {quantity_text.size(8 * sum(sizes))}"

    def takes_weights_of(self, other: ImportedModel) -> bool:
        """Whether weights that the other one prepared are all that this one needs, in its layout."""
        same_layout = (self._turned, self._kernels) == (other._turned, other._kernels)
        return same_layout and self.graph.weights.keys() <= other.graph.weights.keys()

    def prepare(self, weights: Mapping[str, Array]) -> dict[str, Any]:
        """NumPy arrays as the file has them, made into arrays of the library in its own layout.

        What the file has in fewer bits may be given in float32, which holds it exactly.
        """
        library = self.library
        return {
            name: (library.kernel if name in self._kernels else library.constant)(
                self._in_layout(name, in_type_of_file(weights[name], own.dtype))
            )
            for name, own in self.graph.weights.items()
        }

    def original(self, name: str, array: Any) -> Array:
        """Turn a weight back into the file's layout, to compare it with the file."""
        held = np.asarray(array)
        if name not in self._turned:
            return held
        order = kernel_order(held.ndim)
        return np.ascontiguousarray(held.transpose([order.index(axis) for axis in range(held.ndim)]))

    def _in_layout(self, name: str, array: Array) -> Array:
        if name not in self._turned:
            return array
        return np.ascontiguousarray(array.transpose(kernel_order(array.ndim)))


def build(graph: Graph, library: LibraryName, *, device: str | None = None, floats: str = "float32") -> ImportedModel:
    """Make a model a function of one library.

    ``device`` is where PyTorch keeps the model's constants; ``floats`` is the type for what the graph has in float32,
    such as bfloat16.
    """
    found = library_named(library, device)
    if floats != "float32":
        found.hold_in(floats)
    return ImportedModel(graph, found)


def in_type_of_file(array: Array, dtype: np.dtype[Any]) -> Array:
    """Make an array of float32 the type of fewer bits that the file has it in."""
    if array.dtype != np.float32 or dtype.itemsize >= array.dtype.itemsize:
        return array
    return array.astype(dtype)


def _held(value: Any, library: Library, turned: Set[str]) -> Any:
    """Make arrays the library's, and bodies functions of it."""
    if isinstance(value, Graph):
        own = turned & {tensor.name for tensor in value.inputs}
        return ImportedModel(value, library, own, is_body=True).of_arrays
    return library.constant(value) if isinstance(value, np.ndarray) else value


def _rounding(step: Step, library: Library, values: Mapping[str, Tensor]) -> Step:
    if step.exact:
        return step
    types = [values[name].dtype if name in values else "" for name in step.outputs]

    def rounded(*arrays: Any) -> tuple[Any, ...]:
        results = step.function(*arrays)
        results = results if isinstance(results, (tuple, list)) else (results,)
        return tuple(library.leave(each, dtype) for each, dtype in zip(results, types, strict=False))  # type: ignore[misc]

    return replace(step, function=rounded)


def _in_range(array: Array, library: Library) -> Array:
    """Graphs hide places of a mask by the least float32. As an infinity it would make NaN of a product with 0."""
    if library.floats != "float16" or array.dtype != np.float32:
        return array
    most = float(np.finfo(np.float16).max)
    return np.where(np.isfinite(array), np.clip(array, -most, most), array)


def library_named(name: LibraryName, device: str | None = None) -> Library:
    if name == "numpy":
        return NumPyLibrary()
    if name == "torch":
        from fairlap.models.onnx_import.libraries.torch_library import TorchLibrary

        return TorchLibrary(device)
    if name == "jax":
        from fairlap.models.onnx_import.libraries.jax_library import JaxLibrary

        return JaxLibrary()
    if name == "tensorflow":
        from fairlap.models.onnx_import.libraries.tensorflow_library import TensorFlowLibrary

        return TensorFlowLibrary()
    raise ValueError(f"no library is named {name!r}")


def _without_known(graph: Graph, nodes: tuple[Node, ...], known: dict[str, Array]) -> list[Node]:
    """Compute in float64 what depends on constants only; add it to ``known``."""
    library = NumPyLibrary()
    left = []
    for node in nodes:
        operator = OPERATORS[node.operator]
        names = [name for name in node.inputs if name]
        sizes = sum(graph.values[name].size for name in (*names, *filter(None, node.outputs)))
        if not operator.folds or any(name not in known for name in names) or sizes > MOST_COMPUTED:
            left.append(node)
            continue
        try:
            results = evaluate(library, node, known, graph.values, graph.opset)
        except FairlapError:
            raise
        except Exception as error:
            raise ModelFileInvalid(f"cannot compute {node.operator} {node.name!r}: {described(error)}") from error
        known.update({name: result for name, result in zip(node.outputs, results, strict=False) if name})
    return left


def _with_last_uses(steps: list[Step], outputs: set[str]) -> tuple[list[Step], list[tuple[str, ...]]]:
    """Select the steps that outputs depend on, and for each the values that no later step uses."""
    needed, kept = set(outputs), []
    for step in reversed(steps):
        if needed.intersection(step.outputs):
            kept.append(step)
            needed.update(step.inputs)
    kept.reverse()
    seen, finished = set(outputs), []
    for step in reversed(kept):
        names = [name for name in dict.fromkeys((*step.inputs, *step.outputs)) if name and name not in seen]
        seen.update(names)
        finished.append(tuple(names))
    finished.reverse()
    return kept, finished
