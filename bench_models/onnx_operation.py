"""Build the ONNX model of an operation from its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec, Tensor
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
IR_VERSION = 10
_TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32}


def model_of(spec: Spec, nodes: Sequence[Any], weights: Arrays, batch: int) -> Any:
    def values(tensors: Sequence[Tensor]) -> list[Any]:
        return [helper.make_tensor_value_info(each.name, _TYPES[each.dtype], each.sized(batch)) for each in tensors]

    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, spec.name, values(spec.inputs), values(spec.outputs), initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
