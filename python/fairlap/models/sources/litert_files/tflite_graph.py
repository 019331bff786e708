"""A LiteRT file as objects: its sizes, weights, names and operators, to be read, changed and written again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fairlap.models.sources.contract import SourceError, known_dtype
from fairlap.models.sources.litert_files.expanded_weights import EXPANDING, expanded_weight
from fairlap.models.sources.litert_files.part import Part, data_of, decoded, kind_of, type_name
from fairlap.models.sources.litert_files.steps import ACCUMULATED, IN_STEPS
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
        self.changed = False
        signature = self._signature()
        self._number = int(signature.subgraphIndex)
        self._main = self._model.subgraphs[self._number]
        self.inputs = {decoded(each.name): self._main.tensors[each.tensorIndex] for each in signature.inputs}
        self.outputs = {decoded(each.name): self._main.tensors[each.tensorIndex] for each in signature.outputs}
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
        return known_dtype(decoded(tensor.name), self._type(tensor))

    @property
    def holds_float16(self) -> bool:
        return any(self._type(tensor) == "float16" for tensor in self._tensors())

    @cached_property
    def is_quantized(self) -> bool:
        return any(self.is_in_steps(tensor) for tensor in self._tensors())

    def require_known_types(self) -> None:
        """Refuse sixteen bits, and steps of types that LiteRT's own kernels alone can read."""
        for tensor in self._tensors():
            name = self._type(tensor)
            if name in ("float16", "bfloat16") or (
                self._has_scales(tensor) and name not in ("float32", *IN_STEPS, *ACCUMULATED)
            ):
                raise SourceError(
                    f"the model computes in a type that fairlap does not race ({decoded(tensor.name)} is {name}); "
                    "LiteRT files may have float32, int8, uint8 and int16, with weights in float16 too"
                )

    def require_no_states(self) -> None:
        """Refuse variables that calls change: LiteRT keeps them from call to call, and nothing sets them back."""
        if any(self._kind(operator) == "ASSIGN_VARIABLE" for operator in self._operators_of_calls()):
            raise SourceError(
                "the model keeps variables from one call to the next (ASSIGN_VARIABLE), as streaming models do, so it "
                "answers equal inputs differently each time; convert it with its states as inputs and outputs"
            )

    @property
    def custom_operators(self) -> bool:
        return any(self._kind(each) == "CUSTOM" for graph in self._model.subgraphs for each in graph.operators)

    def _operators_of_calls(self) -> Iterator[Any]:
        """All but those that run before the first call."""
        once = {
            int(each.builtinOptions.initSubgraphIndex)
            for graph in self._model.subgraphs
            for each in graph.operators
            if self._kind(each) == "CALL_ONCE"
        }
        for number, graph in enumerate(self._model.subgraphs):
            if number not in once:
                yield from graph.operators

    def is_in_steps(self, tensor: Any) -> bool:
        return self._has_scales(tensor) and self._type(tensor) in (*IN_STEPS, *ACCUMULATED)

    def _has_scales(self, tensor: Any) -> bool:
        scales = tensor.quantization.scale if tensor.quantization else None
        return scales is not None and len(scales) > 0

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
        return self._type(tensor) in _FLOATS and self._data(tensor) is not None

    def _expand(self, graph: Any) -> None:
        sources, others = [], []
        for operator in graph.operators:  # in the order in which they run
            if not self._expands(graph, operator):
                others.append(operator)
                continue
            source, target = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
            stored = np.frombuffer(bytes(self._data(source)), _FLOATS[self._type(source)])
            widened = self._kind(operator) == "DEQUANTIZE"
            values = expanded_weight(stored, source, decoded(source.name), widened=widened)
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
    def main(self) -> Part:
        return self.part(self._number)

    def part(self, number: int) -> Part:
        return Part(self._schema, self._model, number)

    @property
    def parts(self) -> int:
        return len(self._model.subgraphs)

    def _kind(self, operator: Any) -> str:
        return kind_of(self._schema, self._model, operator)

    def _type(self, tensor: Any) -> str:
        return type_name(self._schema, tensor.type)

    def _tensors(self) -> Iterator[Any]:
        return (tensor for graph in self._model.subgraphs for tensor in graph.tensors)

    def _data(self, tensor: Any) -> Any:
        return data_of(self._model, tensor)

    def _float_constants(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Buffers and shapes by the tensors' names, with a number where several have the same."""
        found: dict[str, tuple[Any, tuple[int, ...]]] = {}
        seen: set[int] = set()
        for tensor in self._tensors():
            if self._type(tensor) != "float32" or self._data(tensor) is None or tensor.buffer in seen:
                continue
            seen.add(tensor.buffer)
            name = decoded(tensor.name)
            name = name if name not in found else f"{name}#{len(found)}"
            shape = () if tensor.shape is None else tuple(int(size) for size in tensor.shape)
            found[name] = (self._model.buffers[tensor.buffer], shape)
        return found
