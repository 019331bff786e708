"""References of ONNX graphs: in float64 by onnx's own evaluator, or the most exact where no float64 can be had.

That is ONNX Runtime in float32, without its optimisations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.models.sources.onnx_graphs.custom_operators import register_custom_operators

_FLOATS = (1, 10, 16)  # float, float16, bfloat16
_DOUBLE = 11

_FATAL = 4  # the least that it logs


class DoubleGraph:
    """A copy of a graph in double precision. Weights are inputs of the graph, so that they can be perturbed."""

    def __init__(self, model: Any) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        graph = copy.graph
        _upcast(graph)
        kept = [tensor for tensor in graph.initializer if tensor.data_type != _DOUBLE]
        floats = [tensor for tensor in graph.initializer if tensor.data_type == _DOUBLE]
        named = {value.name for value in graph.input}
        for tensor in floats:
            if tensor.name not in named:
                graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, _DOUBLE, list(tensor.dims)))
        del graph.initializer[:]
        graph.initializer.extend(kept)
        self._constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in floats}
        self._names = [value.name for value in graph.output]
        self._evaluator = ReferenceEvaluator(copy)

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        fed = {name: weights.get(name, array) for name, array in self._constants.items()}
        fed |= {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        outputs = self._evaluator.run(None, {name: np.asarray(array) for name, array in fed.items()})
        return dict(zip(self._names, (np.asarray(each) for each in outputs), strict=True))


def _upcast(graph: Any) -> None:
    """Types of inputs and outputs, constants, and what nodes cast to. Subgraphs too."""
    import onnx

    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type in _FLOATS:
            value.type.tensor_type.elem_type = _DOUBLE
    del graph.value_info[:]
    for tensor in graph.initializer:
        _upcast_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            _upcast_attribute(node, attribute)
        if node.op_type == "ConstantOfShape" and not node.attribute:
            tensor = onnx.numpy_helper.from_array(np.zeros(1, np.float64))
            node.attribute.append(onnx.helper.make_attribute("value", tensor))


def _upcast_attribute(node: Any, attribute: Any) -> None:
    import onnx

    if attribute.HasField("g"):
        _upcast(attribute.g)
    if attribute.HasField("t"):
        _upcast_tensor(attribute.t)
    if attribute.name in ("to", "dtype") and attribute.i in _FLOATS:
        attribute.i = _DOUBLE
    if node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
        values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
        tensor = onnx.numpy_helper.from_array(np.asarray(values, np.float64))
        attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))


def _upcast_tensor(tensor: Any) -> None:
    import onnx

    if tensor.data_type in _FLOATS:
        name = tensor.name
        array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, name))


def session_of(model: Any, *, optimised: bool = False, custom_ops: str = "") -> Any:
    """Of a model, or of the path of a file, which may have external data."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    if custom_ops:
        register_custom_operators(options, custom_ops)
    content = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


class RuntimeGraph:
    """A graph in ONNX Runtime. Weights are inputs of it, to be perturbed, where its operators allow that."""

    def __init__(self, model: Any, custom_ops: str = "") -> None:
        copy = type(model)()
        copy.CopyFrom(model)
        weights = [tensor for tensor in copy.graph.initializer if tensor.data_type == 1]
        named = {value.name for value in copy.graph.input}
        for tensor in weights:
            if tensor.name not in named:
                value = copy.graph.input.add(name=tensor.name)
                value.type.tensor_type.elem_type = tensor.data_type
                for size in tensor.dims:
                    value.type.tensor_type.shape.dim.add().dim_value = size
        copy.ir_version = max(copy.ir_version, 4)  # from which on an input may have a default value
        try:
            self._session = session_of(copy, custom_ops=custom_ops)
        except Exception:  # some operators want constants
            self._session = session_of(model, custom_ops=custom_ops)
        self._types = {each.name: _numpy_type(model, each.name) for each in self._session.get_inputs()}
        self._names = [value.name for value in model.graph.output]
        self._weights = {each.name for each in self._session.get_overridable_initializers()}

    def __call__(self, weights: Arrays, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        fed = {name: np.asarray(array).astype(self._types[name]) for name, array in inputs.items()}
        fed |= {name: np.asarray(weights[name], np.float32) for name in self._weights if name in weights}
        return dict(zip(self._names, map(np.asarray, self._session.run(self._names, fed)), strict=True))


def _numpy_type(model: Any, name: str) -> Any:
    from onnx import helper

    kind = next(value.type.tensor_type.elem_type for value in model.graph.input if value.name == name)
    return helper.tensor_dtype_to_np_dtype(kind)
