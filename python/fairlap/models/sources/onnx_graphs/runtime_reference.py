"""The most exact answer where no float64 reference can be had: ONNX Runtime in float32, without its optimisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays

_FATAL = 4  # the least that it logs


def session_of(model: Any, *, optimised: bool = False) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class RuntimeGraph:
    """Weights are inputs of the graph, so that they can be perturbed, where its operators allow that."""

    def __init__(self, model: Any) -> None:
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
            self._session = session_of(copy)
        except Exception:  # some operators want constants
            self._session = session_of(model)
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
