"""Build ONNX graphs node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec, Tensor
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
IR_VERSION = 10
_TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32}


class Graph:
    """Methods add nodes, and most return the name of the value that they give."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def add(self, operation: str, *inputs: str, gives: str = "", **attributes: Any) -> str:
        name = gives or f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [name], name=f"node_{name}", **attributes))
        return name

    def add_several(self, operation: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node that gives several values, by the names they get."""
        self.nodes.append(helper.make_node(operation, inputs, outputs, name=f"node_{outputs[0]}", **attributes))

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"constant/{len(self.nodes)}"
        return self.add("Constant", gives=name, value=numpy_helper.from_array(np.asarray(value, dtype)))

    def model(self, spec: Spec, weights: Arrays, batch: int) -> Any:
        return model_of(spec, self.nodes, weights, batch)


def model_of(spec: Spec, nodes: Sequence[Any], arrays: Arrays, batch: int) -> Any:
    def values(tensors: Sequence[Tensor]) -> list[Any]:
        return [helper.make_tensor_value_info(each.name, _TYPES[each.dtype], each.sized(batch)) for each in tensors]

    return model_with(spec.name, nodes, values(spec.inputs), values(spec.outputs), arrays)


def model_with(
    name: str, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], arrays: Mapping[str, Any]
) -> Any:
    initializers = [numpy_helper.from_array(array, each) for each, array in arrays.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
