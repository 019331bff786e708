"""Build the ONNX graph of an image network."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.units import EPSILON, STATISTICS, Unit
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
IR_VERSION = 10


class ImageGraph:
    """Every method adds nodes and returns the name of the value that they give."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []

    def add(self, operation: str, *inputs: str, to: str = "", **attributes: Any) -> str:
        name = to or f"{operation.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [name], name=f"node_{name}", **attributes))
        return name

    def constant(self, value: float) -> str:
        return self.add("Constant", value=helper.make_tensor("", TensorProto.FLOAT, [], [value]))

    def unit(self, unit: Unit, image: str) -> str:
        convolved = self.add(
            "Conv",
            image,
            f"{unit.convolution}.weight",
            kernel_shape=[unit.kernel, unit.kernel],
            pads=[unit.padding] * 4,
            strides=[unit.stride, unit.stride],
            group=unit.groups,
        )
        norm = (f"{unit.normalisation}.{part}" for part in ("weight", "bias", *STATISTICS))
        return self.add("BatchNormalization", convolved, *norm, epsilon=EPSILON)

    def classify(self, image: str, layer: str, output: str) -> str:
        features = self.add("Flatten", self.add("GlobalAveragePool", image))
        return self.add("Gemm", features, f"{layer}.weight", f"{layer}.bias", to=output, transB=1)

    def model(self, spec: Spec, weights: Arrays, batch: int) -> Any:
        inputs, outputs = (
            [helper.make_tensor_value_info(value.name, TensorProto.FLOAT, value.sized(batch)) for value in values]
            for values in (spec.inputs, spec.outputs)
        )
        initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph(self._nodes, spec.name, inputs, outputs, initializers)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
