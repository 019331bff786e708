"""Results of a graph as GPUs get them: each operator of 16 bits is computed in fp32 and rounded once.

onnx's own evaluator adds up in the type of the operands, which no tensor core does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


class Evaluated:
    def __init__(self, model: onnx.ModelProto) -> None:
        graph = onnx.shape_inference.infer_shapes(model).graph
        self._types = {
            each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.output, *graph.value_info)
        }
        self._outputs = [each.name for each in graph.output]
        self._evaluator = ReferenceEvaluator(self._in_fp32(model))

    def run(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        wide = {name: array.astype(np.float32) if self._narrow(name) else array for name, array in given.items()}
        results = self._evaluator.run(None, wide)
        return [
            each.astype(helper.tensor_dtype_to_np_dtype(self._types[name]))
            for name, each in zip(self._outputs, results, strict=True)
        ]

    def _narrow(self, name: str) -> bool:
        return self._types.get(name) in _NARROW

    def _in_fp32(self, model: onnx.ModelProto) -> onnx.ModelProto:
        wide = onnx.ModelProto()
        wide.CopyFrom(model)
        graph = wide.graph
        for held in graph.initializer:
            if held.data_type in _NARROW:
                held.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(held).astype(np.float32), held.name))
        for value in (*graph.input, *graph.output):
            if self._narrow(value.name):
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        del graph.value_info[:]
        del graph.node[:]
        for node in model.graph.node:
            graph.node.extend(self._rounded(node))
        return wide

    def _rounded(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Compute the node in fp32, and pass its outputs through the type that they have."""
        own = onnx.NodeProto()
        own.CopyFrom(node)
        for attribute in own.attribute:
            if attribute.name == "to" and attribute.i in _NARROW:
                attribute.i = TensorProto.FLOAT
        after = []
        for index, name in enumerate(node.output):
            if self._narrow(name):
                own.output[index] = f"{name} unrounded"
                after.append(helper.make_node("Cast", [own.output[index]], [f"{name} narrow"], to=self._types[name]))
                after.append(helper.make_node("Cast", [f"{name} narrow"], [name], to=TensorProto.FLOAT))
        return [own, *after]
