"""A server of a model by gRPC, in threads of its own, that speaks KServe's protocol with messages written by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
from grpc_stream_server import SERVICE
from model_servers import ModelServer, Tensors
from protobuf_by_hand import all_of, message, text_of, varint, varints_in

_NAMES = {"float32": "FP32", "float64": "FP64", "int32": "INT32", "int64": "INT64"}
_NUMPY = {name: dtype for dtype, name in _NAMES.items()}
_TYPED = {"float32": 6, "float64": 7, "int32": 2, "int64": 3}
_ANY_SIZE = 2**64 - 1  # -1, as a varint has it


class GrpcModelServer:
    """``typed`` has the values of answers one by one, as of servers that do not write raw bytes."""

    def __init__(self, model: ModelServer, *, typed: bool = False, fault: str = "", fault_from: int = 0) -> None:
        self.model, self.typed, self.fault, self.fault_from = model, typed, fault, fault_from
        self.requests: list[bytes] = []
        self.over = threading.Event()

    def __enter__(self) -> GrpcModelServer:
        import grpc

        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((_handlers(self),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        return self

    def __exit__(self, _kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self.over.set()
        self._server.stop(0).wait(10)

    @property
    def address(self) -> str:
        return f"grpc://127.0.0.1:{self.port}:model=m"

    def answer(self, request: bytes, context: Any) -> bytes:
        import grpc

        self.requests.append(request)
        fault = self.fault if len(self.requests) > self.fault_from else ""
        if fault == "hangs":
            self.over.wait(30)
        if fault == "dies":
            self._server.stop(0)
            self.over.wait(30)
        if fault == "status":
            context.abort(grpc.StatusCode.INTERNAL, "the \x1b[31mdevice is lost")
        if fault == "rubbish":
            return b"\xff\xff"
        raw = all_of(request, 7)
        inputs = {}
        for tensor, data in zip(all_of(request, 5), raw, strict=True):
            dtype = _NUMPY[text_of(tensor, 2)]
            inputs[text_of(tensor, 1)] = np.frombuffer(data, dtype).reshape(varints_in(all_of(tensor, 3)))
        found = {name: np.asarray(each) + (fault == "values") for name, each in self.model.forward(inputs).items()}
        return self._written(found, fault)

    def _written(self, arrays: Mapping[str, np.ndarray], fault: str) -> bytes:
        tensors, raw = [], []
        for name, array in arrays.items():
            shape = b"".join(map(varint, array.shape))
            data = array.tobytes()[:-4] if fault == "short" else array.tobytes()
            contents = [(5, message((_TYPED[array.dtype.name], data)))] if self.typed else []
            kind = "BYTES" if fault == "type" else _NAMES[array.dtype.name]
            named = "other" if fault == "no output" else name
            tensors.append((5, message((1, named), (2, kind), (3, shape), *contents)))
            raw += [] if self.typed else [(6, data)]
        return message((1, "m"), *tensors, *raw)

    def metadata(self) -> bytes:
        return message(
            (1, "m"),
            *((4, each) for each in _listed(self.model.inputs)),
            *((5, each) for each in _listed(self.model.outputs)),
        )


def _listed(tensors: Tensors) -> list[bytes]:
    return [
        message((1, name), (2, _NAMES[dtype]), (3, b"".join(varint(_ANY_SIZE if size < 0 else size) for size in shape)))
        for name, (dtype, shape) in tensors.items()
    ]


def _handlers(server: GrpcModelServer) -> Any:
    import grpc

    answers: dict[str, Callable[[bytes, Any], bytes]] = {
        "ServerMetadata": lambda _request, _context: message((1, "test server"), (2, "3")),
        "ModelMetadata": lambda _request, _context: server.metadata(),
        "ModelInfer": server.answer,
    }

    class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            found = answers.get(details.method.removeprefix(SERVICE))
            return None if found is None else grpc.unary_unary_rpc_method_handler(found)

    return Handlers()
