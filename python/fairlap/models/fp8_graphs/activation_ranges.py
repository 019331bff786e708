"""The largest values of a graph that sets of inputs lead to, as ONNX Runtime computes them in float32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def largest_values(
    model: Any, names: Sequence[str], sets: Iterable[Mapping[str, npt.NDArray[Any]]]
) -> dict[str, float]:
    """Find the largest magnitude of each named value, over all sets; NaN where one is not a number."""
    import onnxruntime
    from onnx import TensorProto, helper

    observed = type(model)()
    observed.CopyFrom(model)
    graph = observed.graph
    del graph.output[:]
    for number, name in enumerate(names):
        graph.node.append(helper.make_node("Abs", [name], [f"magnitudes/{number}"]))
        graph.node.append(helper.make_node("ReduceMax", [f"magnitudes/{number}"], [f"largest/{number}"], keepdims=0))
        graph.output.append(helper.make_tensor_value_info(f"largest/{number}", TensorProto.FLOAT, ()))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(observed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = np.zeros(len(names))
    for own in sets:
        found = np.maximum(found, np.array(session.run(None, dict(own)), np.float64))
    return dict(zip(names, found.tolist(), strict=True))
