"""SavedModels: load them, and compute the frozen graph in float64."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.models.arrays import Arrays, widened
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.tensorflow_files.tensorflow_operators import read_saved_model

_FLOAT, _DOUBLE = 1, 2  # DataType


def _loaded(folder: Path) -> Any:
    """Load a model; without the optimizer's slots for each variable, if Keras 2 saved it with an optimizer."""
    import tensorflow as tf

    try:
        return tf.saved_model.load(str(folder))
    except AttributeError as error:
        if "add_slot" not in str(error):
            raise
    saved = read_saved_model(folder)
    for graph in saved.meta_graphs:
        for node in graph.object_graph_def.nodes:
            del node.slot_variables[:]
    with tempfile.TemporaryDirectory() as scratch:
        for each in folder.resolve().iterdir():
            if each.name != "saved_model.pb":
                (Path(scratch) / each.name).symlink_to(each)
        (Path(scratch) / "saved_model.pb").write_bytes(saved.SerializeToString())
        return tf.saved_model.load(scratch)


class SavedFunction:
    """The signature of a SavedModel that is raced, its float32 variables, and its inputs and outputs by name."""

    def __init__(self, folder: Path) -> None:
        import tensorflow as tf

        try:
            self.loaded = _loaded(folder)
        except Exception as error:  # TensorFlow raises many errors
            raise SourceError(f"TensorFlow cannot load {folder.name}: {described(error)}") from None
        signatures = self.loaded.signatures
        if "serving_default" not in signatures:
            raise SourceError(
                f"{folder.name} has no signature serving_default; it has {', '.join(signatures) or 'none'}"
            )
        self.function = signatures["serving_default"]
        self.inputs: dict[str, Any] = dict(self.function.structured_input_signature[1])
        self.outputs: dict[str, Any] = dict(sorted(self.function.structured_outputs.items()))  # in any order
        self.variables: dict[str, Any] = {}
        for number, variable in enumerate(self.function.variables):
            if variable.dtype == tf.float32:
                name = variable.name.removesuffix(":0")
                self.variables[name if name not in self.variables else f"{name}#{number}"] = variable

    def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        found = self.function(**inputs)
        return tuple(found[name] for name in self.outputs)

    def weights(self) -> dict[str, np.ndarray]:
        return {name: np.array(variable.numpy()) for name, variable in self.variables.items()}

    def forward(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        """In float32, whatever it is given."""
        import tensorflow as tf

        for name, variable in self.variables.items():
            variable.assign(np.asarray(weights[name]).astype(np.float32))
        found = self({name: tf.constant(np.asarray(inputs[name]), spec.dtype) for name, spec in self.inputs.items()})
        return {name: each.numpy() for name, each in zip(self.outputs, found, strict=True)}


class DoubleFunction:
    """The frozen graph of a signature with every float32 made float64. Weights are found in it by their values."""

    def __init__(self, saved: SavedFunction) -> None:
        import tensorflow as tf
        from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

        frozen = convert_variables_to_constants_v2(saved.function)
        definition = frozen.graph.as_graph_def()
        constants = _float_constants(definition)
        _widen(definition)
        by_value = {(array.shape, array.tobytes()): name for name, array in saved.weights().items()}
        self._places = {
            node: by_value[array.shape, array.tobytes()]
            for node, array in constants.items()
            if (array.shape, array.tobytes()) in by_value
        }
        if set(self._places.values()) != set(saved.variables):
            raise SourceError("TensorFlow changed a variable while it froze the graph, so its weights cannot be found")
        specs = {each.name.partition(":")[0]: each for each in frozen.inputs}
        if set(specs) != set(saved.inputs):
            raise SourceError("the graph that TensorFlow froze has other inputs than the SavedModel")
        self._order = list(saved.outputs)
        wanted = _output_places(frozen, saved)

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def run(held: dict[str, Any], given: dict[str, Any]) -> list[Any]:
            mapped = {f"{name}:0": given[name] for name in specs} | {
                f"{node}:0": held[name] for node, name in self._places.items()
            }
            return list(tf.graph_util.import_graph_def(definition, mapped, wanted, name=""))

        self._run = run

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        import tensorflow as tf

        held = {name: tf.constant(np.asarray(weights[name]), tf.float64) for name in set(self._places.values())}
        given = {name: tf.constant(widened(np.asarray(array))) for name, array in inputs.items()}
        return {name: each.numpy() for name, each in zip(self._order, self._run(held, given), strict=True)}


def _output_places(frozen: Any, saved: SavedFunction) -> list[str]:
    """Functions return a mapping's values in the order of its sorted keys."""
    places = dict(zip(sorted(saved.outputs), [each.name for each in frozen.outputs], strict=True))
    return [places[name] for name in saved.outputs]


def _float_constants(definition: Any) -> dict[str, np.ndarray]:
    from tensorflow import make_ndarray

    return {
        node.name: make_ndarray(node.attr["value"].tensor)
        for node in definition.node
        if node.op == "Const" and node.attr["dtype"].type == _FLOAT
    }


def _widen(definition: Any) -> None:
    """Types of nodes, of functions, and of constants."""
    for function in definition.library.function:
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            argument.type = _DOUBLE if argument.type == _FLOAT else argument.type
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    for node in nodes:
        for value in node.attr.values():
            if value.type == _FLOAT:
                value.type = _DOUBLE
            for place, kind in enumerate(value.list.type):
                value.list.type[place] = _DOUBLE if kind == _FLOAT else kind
            if value.HasField("tensor") and value.tensor.dtype == _FLOAT:
                _widen_tensor(value.tensor)


def _widen_tensor(tensor: Any) -> None:
    from tensorflow import make_ndarray, make_tensor_proto

    tensor.CopyFrom(make_tensor_proto(make_ndarray(tensor).astype(np.float64)))
