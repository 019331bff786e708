"""A LiteRT file as objects: its sizes, weights, names and operators, to be read, changed and written again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fairlap.models.sources.contract import SourceError, known_dtype
from fairlap.models.sources.litert_files.expanded_weights import EXPANDING, expanded_weight
from fairlap.models.spec import Dtype

_KEEP_VALUES = ("CAST", "RESHAPE", "EXPAND_DIMS", "SQUEEZE")
_LOOKUPS = {"GATHER": (0, 1), "EMBEDDING_LOOKUP": (1, 0)}  # places of the table and of what indexes it
_FLOATS = {"float32": np.float32, "float16": np.float16}


class TfliteGraph:
    """``inputs`` and ``outputs`` are tensors of the one signature, by its names."""

    def __init__(self, content: bytes) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self._schema = schema
        self._model = schema.ModelT.InitFromPackedBuf(content, 0)
        self._types: dict[int, Any] = {
            value: name.lower() for name, value in vars(schema.TensorType).items() if not name.startswith("_")
        }
        self.changed = False
        signature = self._signature()
        self._main = self._model.subgraphs[signature.subgraphIndex]
        self.inputs = {_decoded(each.name): self._main.tensors[each.tensorIndex] for each in signature.inputs}
        self.outputs = {_decoded(each.name): self._main.tensors[each.tensorIndex] for each in signature.outputs}
        self._weights = self._float_constants()

    def _signature(self) -> Any:
        found = self._model.signatureDefs or []
        if len(found) > 1:
            raise SourceError(f"the file has {len(found)} signatures; keep the one to race")
        if found:
            return found[0]
        signature = self._schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = "serving_default", 0
        main = self._model.subgraphs[0]
        signature.inputs = [self._entry(main, place) for place in main.inputs]
        signature.outputs = [self._entry(main, place) for place in main.outputs]
        self._model.signatureDefs = [signature]
        self.changed = True
        return signature

    def _entry(self, graph: Any, place: int) -> Any:
        entry = self._schema.TensorMapT()
        entry.name, entry.tensorIndex = graph.tensors[place].name, int(place)
        return entry

    def sizes(self, tensor: Any) -> tuple[int | None, ...]:
        """None where the file leaves a size open."""
        fixed = tuple(int(size) for size in ([] if tensor.shape is None else tensor.shape))
        signature = tensor.shapeSignature
        if signature is None or len(signature) != len(fixed):
            return fixed
        return tuple(None if int(open_) < 0 else size for open_, size in zip(signature, fixed, strict=True))

    def bind(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """LiteRT infers all other shapes from those of the inputs."""
        for name, shape in shapes.items():
            tensor = self.inputs[name]
            if tuple(tensor.shape if tensor.shape is not None else ()) != shape:
                tensor.shape = np.array(shape, np.int32)
                self.changed = True

    def dtype(self, tensor: Any) -> Dtype:
        return known_dtype(_decoded(tensor.name), self._types[tensor.type])

    @property
    def holds_float16(self) -> bool:
        return any(self._types[tensor.type] == "float16" for tensor in self._tensors())

    def require_float32(self) -> None:
        for tensor in self._tensors():
            name = self._types[tensor.type]
            scales = tensor.quantization.scale if tensor.quantization else None
            if name in ("float16", "bfloat16") or (scales is not None and len(scales)):
                raise SourceError(
                    f"the model is quantized or in half precision ({_decoded(tensor.name)} is {name}); only models "
                    "that compute in float32 are raced, with weights in float32 or float16"
                )

    def expanded(self) -> TfliteGraph:
        """Copy it with all weights dense and in float32, where some are sparse or in float16; else return itself."""
        if not any(self._expands(graph, each) for graph in self._model.subgraphs for each in graph.operators):
            return self
        found = TfliteGraph(self.packed())
        for graph in found._model.subgraphs:
            found._expand(graph)
        found._forget_unused_buffers()
        found._weights = found._float_constants()
        return found

    def _expands(self, graph: Any, operator: Any) -> bool:
        """Whether it makes another weight of a weight, whatever the inputs are."""
        if self._kind(operator) not in EXPANDING:
            return False
        tensor = graph.tensors[operator.inputs[0]]
        return self._types[tensor.type] in _FLOATS and self._data(tensor) is not None

    def _expand(self, graph: Any) -> None:
        sources, others = [], []
        for operator in graph.operators:  # in the order in which they run
            if not self._expands(graph, operator):
                others.append(operator)
                continue
            source, target = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
            stored = np.frombuffer(bytes(self._data(source)), _FLOATS[self._types[source.type]])
            widened = self._kind(operator) == "DEQUANTIZE"
            values = expanded_weight(stored, source, _decoded(source.name), widened=widened)
            buffer = self._schema.BufferT()
            buffer.data = np.frombuffer(values.tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            target.buffer, target.name = len(self._model.buffers) - 1, source.name
            sources.append(int(operator.inputs[0]))
        graph.operators = others
        for place in set(sources) - {int(place) for operator in others for place in operator.inputs}:
            tensor = graph.tensors[place]
            tensor.buffer, tensor.type, tensor.sparsity = 0, self._schema.TensorType.FLOAT32, None

    def _forget_unused_buffers(self) -> None:
        used = {tensor.buffer for tensor in self._tensors()}
        for place, buffer in enumerate(self._model.buffers):
            if place not in used:
                buffer.data = None

    def weights(self) -> dict[str, np.ndarray]:
        return {
            name: np.frombuffer(bytes(buffer.data), np.float32).reshape(shape)
            for name, (buffer, shape) in self._weights.items()
        }

    def with_weights(self, weights: Mapping[str, Any]) -> bytes:
        """Pack the file with other values of the same weights."""
        for name, (buffer, _) in self._weights.items():
            values = np.asarray(weights[name]).astype(np.float32)
            buffer.data = np.frombuffer(values.tobytes(), np.uint8)
        return self.packed()

    def packed(self) -> bytes:
        import flatbuffers

        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(self._model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def rows_of(self, name: str) -> int | None:
        """How many rows the smallest table has that this input indexes."""
        holds = {self._main.tensors.index(self.inputs[name])}
        found = []
        for operator in self._main.operators:
            kind = self._kind(operator)
            if kind in _LOOKUPS:
                table, index = (int(operator.inputs[place]) for place in _LOOKUPS[kind])
                axis = getattr(operator.builtinOptions, "axis", 0)
                if index in holds and self._data(self._main.tensors[table]) is not None:
                    found.append(int(self._main.tensors[table].shape[axis]))
            elif kind in _KEEP_VALUES and int(operator.inputs[0]) in holds:
                holds.update(int(place) for place in operator.outputs)
        return min(found, default=None)

    @property
    def has_several_parts(self) -> bool:
        return len(self._model.subgraphs) > 1

    def operations(self) -> Iterator[tuple[str, Any, tuple[int, ...], tuple[int, ...]]]:
        """Name each operator, in the order in which they run, with its options and the places of its tensors."""
        for each in self._main.operators:
            inputs, outputs = (tuple(map(int, places)) for places in (each.inputs, each.outputs))
            kind = self._kind(each)
            if kind == "CUSTOM":
                kind = f"the custom operator {_decoded(self._model.operatorCodes[each.opcodeIndex].customCode)}"
            yield kind, each.builtinOptions, inputs, outputs

    def place_of(self, tensor: Any) -> int:
        return next(place for place, each in enumerate(self._main.tensors) if each is tensor)

    def name_of(self, place: int) -> str:
        return _decoded(self._main.tensors[place].name)

    def type_of(self, place: int) -> str:
        return str(self._types[self._main.tensors[place].type])

    def constant(self, place: int) -> np.ndarray | None:
        """Read what the file holds; None of what is computed."""
        tensor = self._main.tensors[place]
        if (data := self._data(tensor)) is None:
            return None
        shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
        return np.frombuffer(bytes(data), np.dtype(self.type_of(place))).reshape(shape)

    def _kind(self, operator: Any) -> str:
        code = self._model.operatorCodes[operator.opcodeIndex]
        number = max(code.builtinCode, code.deprecatedBuiltinCode)
        names = vars(self._schema.BuiltinOperator)
        return next((name for name, value in names.items() if value == number and name[0] != "_"), "")

    def _tensors(self) -> Iterator[Any]:
        return (tensor for graph in self._model.subgraphs for tensor in graph.tensors)

    def _data(self, tensor: Any) -> Any:
        data = self._model.buffers[tensor.buffer].data
        return data if data is not None and len(data) else None

    def _float_constants(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Buffers and shapes by the tensors' names, with a number where several have the same."""
        found: dict[str, tuple[Any, tuple[int, ...]]] = {}
        seen: set[int] = set()
        for tensor in self._tensors():
            if self._types[tensor.type] != "float32" or self._data(tensor) is None or tensor.buffer in seen:
                continue
            seen.add(tensor.buffer)
            name = _decoded(tensor.name)
            name = name if name not in found else f"{name}#{len(found)}"
            shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
            found[name] = (self._model.buffers[tensor.buffer], shape)
        return found


def _decoded(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
