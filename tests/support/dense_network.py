"""A network with one hidden layer as an ONNX file, with weights of the caller's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

Weights = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of the hidden layer and of the output: a matrix and a bias each."""


def save_network(path: Path, weights: Weights) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gemm", ["pixels", "w1", "b1"], ["sums"]),
        helper.make_node("Relu", ["sums"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "w2", "b2"], ["logits"]),
    ]
    named = zip(("w1", "b1", "w2", "b2"), weights, strict=True)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", weights[3].size])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in named],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
