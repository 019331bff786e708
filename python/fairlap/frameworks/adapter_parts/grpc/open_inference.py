"""The open inference protocol, version 2, over gRPC: a call sends the tensors of a model, and gets those of its answer.

Tensors are sent as raw bytes, which Triton, MLServer and OpenVINO Model Server take; in answers both forms are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fairlap.errors import shown
from fairlap.frameworks.adapter_parts.grpc.channel import grpc_module, is_connected, open_channel
from fairlap.frameworks.adapter_parts.grpc.messages import (
    ABOUT,
    INFER,
    MODEL,
    NotAMessage,
    messages,
    name_and_version,
    parsed,
)
from fairlap.frameworks.adapter_parts.http.http_options import TENSORS, HttpOptions
from fairlap.frameworks.adapter_parts.http.served_model import ServedModel, ServedTensor
from fairlap.frameworks.adapter_parts.http.tensor_messages import DATATYPES, NAMES, BadTensors
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.arrays import Arrays
from fairlap.printable import one_line
from fairlap.request.fields.server_address import ServerAddress

_MOST_BYTES = 2**31 - 1

_CONTENTS = {
    "bool": "bool_contents",
    **dict.fromkeys(("int8", "int16", "int32"), "int_contents"),
    "int64": "int64_contents",
    **dict.fromkeys(("uint8", "uint16", "uint32"), "uint_contents"),
    "uint64": "uint64_contents",
    "float32": "fp32_contents",
    "float64": "fp64_contents",
}
"""By NumPy's name of a type, where its values are in a message that has them one by one."""


class GrpcConnection:
    """Whatever goes wrong on it is the server's failure, in one line."""

    is_kept = True

    def __init__(self, address: ServerAddress, timeout_s: float) -> None:
        self._grpc: Any = grpc_module()
        self.address, self._timeout_s = address, timeout_s
        self._channel = open_channel(address, None, timeout_s, _MOST_BYTES)

    def call(self, method: str, request: bytes) -> bytes:
        codes = self._grpc.StatusCode
        try:
            answer: bytes = self._channel.unary_unary(method)(request, timeout=self._timeout_s)
            return answer
        except self._grpc.RpcError as error:
            detail = one_line(str(error.details() or ""))
            if error.code() is codes.DEADLINE_EXCEEDED:
                what = f"did not answer within {self._timeout_s:g} s"
            elif error.code() is codes.UNAVAILABLE and not is_connected(self._grpc, self._channel):
                what = f"cannot be reached: {detail}"
            else:
                what = f"answered {method.rpartition('/')[2]} with status {error.code().name}: {detail}"
        raise ServerFailed(f"the server at {self.address.text} {what}")


class OpenInferenceByGrpc:
    title = "open inference protocol v2 by gRPC"
    tensors = "raw bytes"

    def __init__(self, connection: GrpcConnection, model: str, options: HttpOptions) -> None:
        if not model:
            raise Unsupported("it names no model; write grpc://HOST:PORT:model=NAME")
        if options.tensors:
            raise Unsupported(f"{TENSORS}= is of servers by http; by grpc they are sent as raw bytes")
        self._connection, self._model = connection, name_and_version(model)
        about = self._parsed(messages().Server, connection.call(ABOUT, b""))
        self.server = " ".join(filter(None, (about.name, about.version)))
        self._wanted: tuple[str, ...] = ()

    def model(self) -> ServedModel | None:
        name, version = self._model
        asked = messages().ModelName(name=name, version=version)
        found = self._parsed(messages().Model, self._connection.call(MODEL, asked.SerializeToString()))
        inputs, outputs = (tuple(map(_described, each)) for each in (found.inputs, found.outputs))
        return ServedModel(inputs, outputs) if inputs and outputs else None

    def want(self, outputs: Iterable[str]) -> None:
        self._wanted = tuple(outputs)

    def ask(self, inputs: Arrays) -> dict[str, np.ndarray]:
        name, version = self._model
        request = messages().Request(model_name=name, model_version=version)
        for own, array in inputs.items():
            request.inputs.add(name=own, datatype=NAMES[array.dtype.name], shape=array.shape)
            request.raw_input_contents.append(array.tobytes())
        for wanted in self._wanted:
            request.outputs.add(name=wanted)
        answer = self._connection.call(INFER, request.SerializeToString())
        try:
            return _arrays_in(parsed(messages().Answer, answer))
        except NotAMessage as error:
            raise BadTensors(str(error)) from None

    def _parsed(self, kind: Any, data: bytes) -> Any:
        try:
            return parsed(kind, data)
        except NotAMessage as error:
            raise ServerFailed(f"the server's metadata cannot be read: {error}") from None


def _described(tensor: Any) -> ServedTensor:
    if tensor.datatype not in DATATYPES:
        raise Unsupported(f"the server's {tensor.name} is {shown(tensor.datatype)}, which is not a number here")
    return ServedTensor(tensor.name, DATATYPES[tensor.datatype], tuple(tensor.shape))


def _arrays_in(answer: Any) -> dict[str, np.ndarray]:
    raw, found = answer.raw_output_contents, {}
    for place, tensor in enumerate(answer.outputs):
        name, shape = tensor.name, tuple(tensor.shape)
        if tensor.datatype not in DATATYPES or any(size < 0 for size in shape):
            raise BadTensors(f"{name} is {shown(tensor.datatype)} {list(shape)}, which is no array of numbers")
        dtype, count = np.dtype(DATATYPES[tensor.datatype]), math.prod(shape)
        if place < len(raw):
            if len(raw[place]) != count * dtype.itemsize:
                raise BadTensors(f"{name} of {dtype} {list(shape)} has {len(raw[place]):,} bytes")
            found[name] = np.frombuffer(raw[place], dtype).reshape(shape)
            continue
        values = getattr(tensor.contents, _CONTENTS[dtype.name]) if dtype.name in _CONTENTS else ()
        if len(values) != count:
            raise BadTensors(f"{name} of {dtype} {list(shape)} has {len(values):,} values")
        found[name] = np.array(values, dtype).reshape(shape)
    return found
