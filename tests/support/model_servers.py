"""Small servers of a model on the loopback interface, in threads, that speak three protocols and go wrong on request.

They share no code with the client: what is read and written here is spelled out from the protocols' documents.
"""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import numpy as np
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.registry import find, reference_at
from fairlap.race.equal_work.materials import Materials

HEADER_LENGTH = "Inference-Header-Content-Length"
_V2 = {"float32": "FP32", "float64": "FP64", "int32": "INT32", "int64": "INT64"}
_TF = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int32": "DT_INT32", "int64": "DT_INT64"}
_NUMPY = {datatype: dtype for dtype, datatype in _V2.items()}

Tensors = Mapping[str, tuple[str, tuple[int, ...]]]
Client = TypeVar("Client")
Forward = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@dataclass
class ModelServer:
    """``fault`` is what goes wrong after ``fault_from`` inferences, and no more after ``fault_to``."""

    inputs: Tensors  # dtypes and shapes by name, -1 for any size
    outputs: Tensors
    forward: Forward
    fault: str = ""
    fault_from: int = 0
    fault_to: int = 10**9
    binary: bool = True
    metadata: dict[str, Any] | None = None  # in place of its own
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    inferences: int = 0
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ModelServer:
        handler = type("Handler", (_Handler,), {"model": self})
        self._http = _Server(("127.0.0.1", 0), handler)
        self._http.model = self
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.end()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def v2(self) -> str:
        return self.at("/v2/models/m")

    def die(self) -> None:
        self._http.end()

    def v2_metadata(self) -> dict[str, Any]:
        def listed(tensors: Tensors) -> list[dict[str, Any]]:
            return [{"name": name, "datatype": _V2[dtype], "shape": shape} for name, (dtype, shape) in tensors.items()]

        return {"name": "m", "platform": "test", "inputs": listed(self.inputs), "outputs": listed(self.outputs)}

    def tensorflow_metadata(self) -> dict[str, Any]:
        def listed(tensors: Tensors) -> dict[str, Any]:
            return {
                name: {"dtype": _TF[dtype], "tensor_shape": {"dim": [{"size": str(size)} for size in shape]}}
                for name, (dtype, shape) in tensors.items()
            }

        signature = {"inputs": listed(self.inputs), "outputs": listed(self.outputs)}
        return {"metadata": {"signature_def": {"signature_def": {"serving_default": signature}}}}


def answering(client_of: Callable[[float], Client], answers: Callable[[Client], object], *timeouts_s: float) -> Client:
    """Return the client of the shortest time within which this machine, which may be busy, has one answer."""
    for timeout_s in timeouts_s:
        with suppress(ServerFailed):
            found = client_of(timeout_s)
            assert answers(found)
            return found
    raise AssertionError(f"no answer within {timeouts_s[-1]} s")


def serving(model: str, materials: Materials, **more: Any) -> ModelServer:
    """Serve a built-in model with the weights of a race."""
    spec, package = find(model).spec, materials.package
    weights = {name: np.array(array) for name, array in materials.weights.items()}
    forward = reference_at(package).forward

    def sizes(tensors: Any) -> Tensors:
        return {
            tensor.name: (tensor.dtype, tuple(-1 if size == "batch" else size for size in tensor.shape))
            for tensor in tensors
        }

    return ModelServer(sizes(spec.inputs), sizes(spec.outputs), lambda inputs: forward(weights, inputs), **more)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ModelServer

    def server_bind(self) -> None:
        self.open: list[socket.socket] = []
        super().server_bind()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.model.connections += 1
        self.open.append(connection)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that break off on purpose."""

    def end(self) -> None:
        self.server_close()
        for connection in self.open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: ModelServer

    def log_message(self, *_words: object) -> None:
        """Not in the output of tests."""

    def do_GET(self) -> None:
        self.model.requests.append((self.path, dict(self.headers), b""))
        found: Any = {
            "/v2": {"name": "test server", "version": "3", "extensions": ["binary_tensor_data"] * self.model.binary},
            "/v2/models/m": self.model.metadata or self.model.v2_metadata(),
            "/v1/models/m/metadata": self.model.metadata or self.model.tensorflow_metadata(),
        }.get(self.path)
        if found is None:
            self._send(404, b'{"error": "no such model"}')
        else:
            self._send(200, json.dumps(found).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        model = self.model
        model.requests.append((self.path, dict(self.headers), body))
        model.inferences += 1
        fault = model.fault if model.fault_from < model.inferences <= model.fault_to else ""
        if self._breaks_off(fault):
            return
        if self.path == "/v2/models/m/infer":
            self._answer_v2(body, fault)
        elif self.path == "/v1/models/m:predict":
            inputs = {name: np.array(data, model.inputs[name][0]) for name, data in json.loads(body)["inputs"].items()}
            outputs = self._outputs(inputs, fault)
            lists: Any = {name: array.tolist() for name, array in outputs.items()}
            self._send(200, json.dumps({"outputs": lists if len(lists) > 1 else next(iter(lists.values()))}).encode())
        else:
            inputs = {name: np.array(data, model.inputs[name][0]) for name, data in json.loads(body)["inputs"].items()}
            outputs = self._outputs(inputs, fault)
            self._send(200, json.dumps({"outputs": {n: a.tolist() for n, a in outputs.items()}}).encode())

    def _breaks_off(self, fault: str) -> bool:
        """Whether the server does not answer."""
        faults: dict[str, Callable[[], object]] = {
            "dies": self.model.die,
            "hangs": lambda: self.model.over.wait(30),
            "closes": lambda: None,
            "status 500": lambda: self._send(500, b'{"error": "the \\u001b[31mdevice is lost"}'),
            "plain status": lambda: self._send(503, b"<html>\nno backend</html>", "text/html"),
            "redirects": lambda: self._send(307, b"", more={"Location": "http://198.51.100.1/"}),
            "not JSON": lambda: self._send(200, b"<html>hello</html>", "text/html"),
            "not HTTP": lambda: self.wfile.write(b"hello there\r\n\r\n"),
            "truncated": lambda: self._send(200, b'{"outputs": [', more={"Content-Length": "1000"}),
            "endless": lambda: self._send(200, b"", more={"Content-Length": str(10**12)}),
        }
        if fault not in faults:
            return False
        act: Callable[[], object] = faults[fault]
        act()
        self.close_connection = True
        return True

    def _outputs(self, inputs: Mapping[str, np.ndarray], fault: str) -> dict[str, np.ndarray]:
        outputs = {
            name: np.asarray(array, self.model.outputs[name][0]) for name, array in self.model.forward(inputs).items()
        }
        changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "values": lambda array: array + 1,
            "NaN": lambda array: np.full_like(array, np.nan),
            "shape": lambda array: array[..., :-1],
        }
        if fault == "no output":
            return {}
        change = changes.get(fault)
        return {name: array if change is None else change(array) for name, array in outputs.items()}

    def _answer_v2(self, body: bytes, fault: str) -> None:
        length = int(self.headers.get(HEADER_LENGTH, len(body)))
        request, start = json.loads(body[:length]), length
        inputs = {}
        for entry in request["inputs"]:
            dtype = np.dtype(_NUMPY[entry["datatype"]])
            if "data" in entry:
                inputs[entry["name"]] = np.array(entry["data"], dtype).reshape(entry["shape"])
                continue
            size = entry["parameters"]["binary_data_size"]
            assert size == math.prod(entry["shape"]) * dtype.itemsize
            inputs[entry["name"]] = np.frombuffer(body[start : start + size], dtype).reshape(entry["shape"])
            start += size
        assert start == len(body)
        outputs = self._outputs(inputs, fault)
        wanted = {each["name"]: each.get("parameters", {}) for each in request["outputs"]}
        listed, raw = [], b""
        for name, array in outputs.items():
            entry = {"name": name, "shape": array.shape, "datatype": _V2[array.dtype.name]}
            if fault == "type":
                entry["datatype"] = "BYTES"
            if fault == "own shape":
                entry["shape"] = [7, *array.shape]
            if wanted[name].get("binary_data"):
                data = array.tobytes()[: -1 if fault == "short" else None]
                listed.append({**entry, "parameters": {"binary_data_size": len(data)}})
                raw += data
            else:
                listed.append({**entry, "data": array.ravel().tolist()})
        header = json.dumps({"model_name": "m", "outputs": listed}).encode()
        self._send(200, header + raw, more={HEADER_LENGTH: str(len(header))} if raw else {})

    def _send(
        self, status: int, body: bytes, kind: str = "application/json", more: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
