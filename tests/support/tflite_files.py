"""Small LiteRT files as users bring them, written without a converter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx_files import drawn

WIDTH, CLASSES = 8, 4


def weights() -> dict[str, np.ndarray]:
    return {"hidden.weight": drawn(CLASSES, WIDTH), "hidden.bias": drawn(CLASSES)}


def dense(path: Path, *, open_batch: bool = True, signature: bool = True, operator: str = "FULLY_CONNECTED") -> Path:
    """``x`` of (batch, 8) times a matrix, plus a bias, through tanh: ``y`` of (batch, 4)."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers = 3, [schema.BufferT()]
    values = weights()

    def tensor(name: str, shape: tuple[int, ...], data: np.ndarray | None = None) -> object:
        made = schema.TensorT()
        made.name, made.shape, made.type = name, list(shape), schema.TensorType.FLOAT32
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            model.buffers.append(buffer)
            made.buffer = len(model.buffers) - 1
        elif open_batch:
            made.shapeSignature = [-1, *shape[1:]]
        return made

    graph.tensors = [
        tensor("main_x:0", (1, WIDTH)),
        tensor("hidden.weight", (CLASSES, WIDTH), values["hidden.weight"]),
        tensor("hidden.bias", (CLASSES,), values["hidden.bias"]),
        tensor("hidden", (1, CLASSES)),
        tensor("main_y:0", (1, CLASSES)),
    ]
    graph.inputs, graph.outputs, graph.operators, model.operatorCodes = [0], [4], [], []
    for number, (name, inputs, output) in enumerate(((operator, [0, 1, 2], 3), ("TANH", [3], 4))):
        code, node = schema.OperatorCodeT(), schema.OperatorT()
        code.version = 1
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        if name == "CUSTOM":
            code.customCode = "TheirOwn"
        if name == "FULLY_CONNECTED":
            node.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
            node.builtinOptions = schema.FullyConnectedOptionsT()
        model.operatorCodes.append(code)
        node.opcodeIndex, node.inputs, node.outputs = number, inputs, [output]
        graph.operators.append(node)
    model.subgraphs = [graph]
    if signature:
        entry = schema.SignatureDefT()
        entry.signatureKey, entry.subgraphIndex = "serving_default", 0
        entry.inputs, entry.outputs = [], []
        for entries, name, place in ((entry.inputs, "x", 0), (entry.outputs, "y", 4)):
            pair = schema.TensorMapT()
            pair.name, pair.tensorIndex = name, place
            entries.append(pair)
        model.signatureDefs = [entry]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path
