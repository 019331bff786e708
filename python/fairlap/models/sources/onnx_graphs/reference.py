"""The float64 reference of an ONNX graph by onnx's own evaluator, from a copy of the graph in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays

_FLOATS = (1, 10, 16)  # float, float16, bfloat16
_DOUBLE = 11


class DoubleGraph:
    """Weights are inputs of the graph, so that they can be perturbed."""

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
