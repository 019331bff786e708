"""Small LiteRT files as users bring them, written without a converter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from onnx_files import drawn

WIDTH, CLASSES = 8, 4


Stored = Literal["float32", "float16", "sparse float16", "sparse float32"]


def weights(stored: Stored = "float32") -> dict[str, np.ndarray]:
    """As a file of this form holds them: some are 0 in a sparse one."""
    found = {"hidden.weight": drawn(CLASSES, WIDTH), "hidden.bias": drawn(CLASSES)}
    if stored.startswith("sparse"):
        found["hidden.weight"][np.abs(found["hidden.weight"]) < 0.3] = 0
    kind = np.float16 if stored.endswith("float16") else np.float32
    return {name: array.astype(kind).astype(np.float32) for name, array in found.items()}


class GraphWriter:
    """A file that is written from the first operator to the last."""

    def __init__(self) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.schema, self.model = schema, schema.ModelT()
        self.model.version, self.model.buffers, self.model.operatorCodes = 3, [schema.BufferT()], []
        self.model.subgraphs = []
        self.begin_graph()

    def begin_graph(self) -> None:
        """Write what follows into a further graph, which a loop or a branch of the first one runs."""
        self.graph = self.schema.SubGraphT()
        self.model.subgraphs.append(self.graph)
        self.graph.tensors, self.graph.operators, self.graph.inputs = [], [], []

    def tensor(self, name: str, shape: Sequence[int], kind: str = "float32", data: np.ndarray | None = None) -> int:
        made = self.schema.TensorT()
        made.name, made.shape, made.type = name, list(shape), getattr(self.schema.TensorType, kind.upper())
        if data is not None:
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(data.astype(kind).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            made.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def weight(self, name: str, values: np.ndarray, stored: Stored) -> int:
        """And the operators that make it dense and float32."""
        kind = stored.rpartition(" ")[2]
        is_sparse = stored.startswith("sparse") and values.ndim == 2
        held = values[values != 0] if is_sparse else values
        place = self.tensor(name, values.shape, kind, held)
        if is_sparse:
            self.graph.tensors[place].sparsity = self._rows(values)
            place = self.operator("DENSIFY", [place], self.tensor(f"{name}_dense", values.shape, kind))
        if kind == "float16":
            place = self.operator("DEQUANTIZE", [place], self.tensor(f"{name}_dequantize", values.shape))
        return place

    def _rows(self, values: np.ndarray) -> object:
        """Compressed by rows."""
        schema, found = self.schema, self.schema.SparsityParametersT()
        rows, columns = schema.DimensionMetadataT(), schema.DimensionMetadataT()
        rows.format, rows.denseSize = schema.DimensionType.DENSE, len(values)
        columns.format = schema.DimensionType.SPARSE_CSR
        columns.arraySegmentsType = columns.arrayIndicesType = schema.SparseIndexVector.Int32Vector
        columns.arraySegments, columns.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
        columns.arraySegments.values = [0, *np.count_nonzero(values, axis=1).cumsum().tolist()]
        columns.arrayIndices.values = np.nonzero(values)[1].tolist()
        found.traversalOrder, found.dimMetadata = [0, 1], [rows, columns]
        return found

    def operator(self, name: str, inputs: list[int], output: int | None, **options: Any) -> int:
        """Write it, and return the place of its output, or -1 where it has none."""
        code, node = self.schema.OperatorCodeT(), self.schema.OperatorT()
        code.version = 1
        code.builtinCode = getattr(self.schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        if name == "CUSTOM":
            code.customCode = "TheirOwn"
        if kind := "FullyConnected" if name == "FULLY_CONNECTED" else options.pop("of", ""):
            node.builtinOptionsType = getattr(self.schema.BuiltinOptions, f"{kind}Options")
            node.builtinOptions = getattr(self.schema, f"{kind}OptionsT")()
            vars(node.builtinOptions).update(options)
        self.model.operatorCodes.append(code)
        node.opcodeIndex, node.inputs = len(self.model.operatorCodes) - 1, inputs
        node.outputs = [] if output is None else [output]
        self.graph.operators.append(node)
        return -1 if output is None else output

    def written(self, path: Path) -> Path:
        import flatbuffers

        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), file_identifier=b"TFL3")
        path.write_bytes(bytes(builder.Output()))
        return path


def dense(
    path: Path,
    *,
    open_batch: bool = True,
    signature: bool = True,
    operator: str = "FULLY_CONNECTED",
    last: str = "TANH",
    stored: Stored = "float32",
) -> Path:
    """``x`` of (batch, 8) times a matrix, plus a bias, through tanh or another: ``y`` of (batch, 4)."""
    file = GraphWriter()
    schema, model, graph = file.schema, file.model, file.graph
    x, hidden, y = (
        file.tensor(name, (1, size)) for name, size in (("main_x:0", WIDTH), ("hidden", CLASSES), ("main_y:0", CLASSES))
    )
    if open_batch:
        for place in (x, hidden, y):
            graph.tensors[place].shapeSignature = [-1, graph.tensors[place].shape[1]]
    held = [file.weight(name, array, stored) for name, array in weights(stored).items()]
    file.operator(operator, [x, *held], hidden)
    file.operator(last, [hidden], y)
    graph.inputs, graph.outputs = [x], [y]
    if signature:
        entry = schema.SignatureDefT()
        entry.signatureKey, entry.subgraphIndex = "serving_default", 0
        entry.inputs, entry.outputs = [], []
        for entries, name, place in ((entry.inputs, "x", x), (entry.outputs, "y", y)):
            pair = schema.TensorMapT()
            pair.name, pair.tensorIndex = name, place
            entries.append(pair)
        model.signatureDefs = [entry]
    return file.written(path)


def one_operator(
    path: Path,
    kind: str,
    given: Sequence[np.ndarray | tuple[Any, ...]],
    result: tuple[int, ...],
    result_type: str = "float32",
    **options: Any,
) -> Path:
    """Of inputs ``x0``, ``x1``, ..., by their sizes, after a type that is not float32, and of constants."""
    file = GraphWriter()
    places = []
    for number, each in enumerate(given):
        if isinstance(each, np.ndarray):
            places.append(file.tensor(f"constant{number}", each.shape, each.dtype.name, each))
        else:
            own_type, sizes = (each[0], each[1:]) if isinstance(each[0], str) else ("float32", each)
            places.append(file.tensor(f"x{number}", sizes, own_type))
            file.graph.inputs.append(places[-1])
    file.graph.outputs = [file.operator(kind, places, file.tensor("y", result, result_type), **options)]
    return file.written(path)


def streaming(path: Path, *, keeps: bool) -> Path:
    """Add ``x`` to a variable, which is zeros before the first call, and keep the sum in it or not."""
    file, of = GraphWriter(), {"of": "VarHandle", "sharedName": "state"}
    x, y, read = (file.tensor(name, (1, WIDTH)) for name in ("x", "y", "read"))
    file.graph.inputs, file.graph.outputs = [x], [y]
    file.operator("CALL_ONCE", [], None, of="CallOnce", initSubgraphIndex=1)
    state = file.operator("VAR_HANDLE", [], file.tensor("state", (), "resource"), **of)
    file.operator("READ_VARIABLE", [state], read, of="ReadVariable")
    file.operator("ADD", [read, x], y, of="Add")
    if keeps:
        file.operator("ASSIGN_VARIABLE", [state, y], None, of="AssignVariable")
    file.begin_graph()
    state = file.operator("VAR_HANDLE", [], file.tensor("state", (), "resource"), **of)
    zeros = file.tensor("zeros", (1, WIDTH), data=np.zeros((1, WIDTH)))
    file.operator("ASSIGN_VARIABLE", [state, zeros], None, of="AssignVariable")
    file.graph.outputs = []
    return file.written(path)


NORMALISED = "L2_NORMALIZATION"  # which has no translation to ONNX
