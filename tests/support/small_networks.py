"""An image network and an encoder as small ONNX files, with all that large ones have in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fairlap.bench_models.bert_base.onnx_model import TransformerGraph
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper
from onnx_files import drawn

IMAGE, CHANNELS = 12, 8
TOKENS, ROWS, HIDDEN, HEADS, LAYERS = 10, 60, 16, 2, 2


def image_network(path: Path, batch: int = 2) -> Path:
    """Write a convolution with stride two, three residual blocks, pooling and a linear layer."""
    nodes: list[NodeProto] = []
    arrays: dict[str, np.ndarray] = {}

    def add(operation: str, *inputs: str, gives: str, **attributes: object) -> str:
        nodes.append(helper.make_node(operation, inputs, [gives], **attributes))
        return gives

    def unit(name: str, image: str, inward: int, stride: int) -> str:
        arrays[f"{name}.weight"] = drawn(CHANNELS, inward, 3, 3, seed=len(arrays)) * np.float32(2 / inward**0.5)
        for part in ("scale", "shift", "mean", "variance"):
            arrays[f"{name}.{part}"] = drawn(CHANNELS, seed=len(arrays))
        arrays[f"{name}.scale"] += 1
        arrays[f"{name}.variance"] = np.abs(arrays[f"{name}.variance"]) + np.float32(0.2)
        convolved = add(
            "Conv",
            image,
            f"{name}.weight",
            gives=f"{name}.conv",
            pads=[1] * 4,
            strides=[stride] * 2,
            kernel_shape=[3, 3],
        )
        parts = [f"{name}.{part}" for part in ("scale", "shift", "mean", "variance")]
        return add("BatchNormalization", convolved, *parts, gives=f"{name}.norm", epsilon=1e-5)

    hidden = add("Relu", unit("stem", "image", 3, 2), gives="stem.out")
    for block in range(3):
        branch = unit(f"block{block}", hidden, CHANNELS, 1)
        hidden = add("Relu", add("Add", branch, hidden, gives=f"sum{block}"), gives=f"out{block}")
    pooled = add("Flatten", add("GlobalAveragePool", hidden, gives="pooled"), gives="features")
    arrays |= {"fc.weight": drawn(5, CHANNELS, seed=1), "fc.bias": drawn(5)}
    add("Gemm", pooled, "fc.weight", "fc.bias", gives="logits", transB=1)
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, IMAGE, IMAGE])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 5])]
    return _saved(path, nodes, inputs, outputs, arrays)


def encoder(path: Path, batch: int = 2) -> Path:
    """Embeddings of words and types, and layers of masked attention and of GELU, each with a normalisation."""
    graph = TransformerGraph()
    arrays: dict[str, np.ndarray] = {
        "words": drawn(ROWS, HIDDEN, seed=1) * np.float32(0.05),  # small, as in BERT, so that an epsilon matters
        "types": drawn(2, HIDDEN, seed=2) * np.float32(0.05),
    }

    def linear(name: str, hidden: str, inward: int, outward: int) -> str:
        arrays[f"{name}.weight"] = drawn(outward, inward, seed=len(arrays)) * np.float32(2.5 / inward**0.5)
        arrays[f"{name}.bias"] = drawn(outward, seed=len(arrays))
        return graph.linear(name, hidden)

    def norm(name: str, hidden: str, gives: str = "") -> str:
        arrays[f"{name}.weight"] = drawn(HIDDEN, seed=len(arrays)) + 1
        arrays[f"{name}.bias"] = drawn(HIDDEN, seed=len(arrays))
        return graph.layer_norm(name, hidden, 1e-12, gives)

    hidden = norm(
        "embedded", graph.add("Add", graph.add("Gather", "words", "ids"), graph.add("Gather", "types", "kinds"))
    )
    seen = graph.add("Cast", graph.add("Unsqueeze", "mask", graph.constant([1, 2], np.int64)), to=TensorProto.FLOAT)
    unseen = graph.add("Mul", graph.add("Sub", graph.constant(1.0, np.float32), seen), graph.constant(-1e9, np.float32))
    for layer in range(LAYERS):
        query, key, value = (linear(f"{layer}.{part}", hidden, HIDDEN, HIDDEN) for part in ("query", "key", "value"))
        attended = graph.attention(query, key, value, HEADS, HIDDEN // HEADS, unseen)
        hidden = norm(f"{layer}.first", graph.add("Add", linear(f"{layer}.out", attended, HIDDEN, HIDDEN), hidden))
        wide = graph.add("Gelu", linear(f"{layer}.wide", hidden, HIDDEN, 2 * HIDDEN))
        narrow = linear(f"{layer}.narrow", wide, 2 * HIDDEN, HIDDEN)
        last = "hidden" if layer == LAYERS - 1 else ""
        hidden = norm(f"{layer}.second", graph.add("Add", narrow, hidden), gives=last)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [batch, TOKENS]) for name in ("ids", "kinds", "mask")
    ]
    outputs = [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [batch, TOKENS, HIDDEN])]
    return _saved(path, graph.nodes, inputs, outputs, arrays)


def _saved(
    path: Path, nodes: list[NodeProto], inputs: list[object], outputs: list[object], arrays: dict[str, np.ndarray]
) -> Path:
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, weights)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path
