"""The net as an ONNX graph."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convnet.spec import IMAGE, STRIDES, channels_of, classes_of
from fairlap.bench_models.onnx_graph import model_with
from fairlap.models.arrays import Arrays
from onnx import TensorProto, helper


def build(weights: Arrays, batch: int, image: int = IMAGE) -> Any:
    nodes, hidden = [], "image"
    for number, stride in enumerate(STRIDES):
        names = [hidden, f"conv{number}.weight", f"conv{number}.bias"]
        convolution = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [stride, stride]}
        nodes.append(helper.make_node("Conv", names, [f"convolved{number}"], **convolution))
        nodes.append(helper.make_node("Relu", [f"convolved{number}"], [f"hidden{number}"]))
        hidden = f"hidden{number}"
    nodes.append(helper.make_node("GlobalAveragePool", [hidden], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "head.weight", "head.bias"], ["logits"], transB=1))
    images = helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, channels_of(weights)[0], image, image])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, classes_of(weights)])
    return model_with("convnet", nodes, [images], [logits], weights)
