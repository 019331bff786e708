"""A contestant that is a server: a call encodes its inputs, sends them, waits for the answer and decodes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import msgspec
import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, as_float32
from fairlap.frameworks.adapter_parts.grpc.open_inference import GrpcConnection, OpenInferenceByGrpc
from fairlap.frameworks.adapter_parts.http.connection import KeptConnection
from fairlap.frameworks.adapter_parts.http.http_options import BINARY, HttpOptions
from fairlap.frameworks.adapter_parts.http.open_inference import OpenInference
from fairlap.frameworks.adapter_parts.http.served_model import ServedModel, matching_names, own_names
from fairlap.frameworks.adapter_parts.http.tensor_messages import BadTensors, array_of, json_object
from fairlap.frameworks.adapter_parts.http.tensorflow_serving import TensorFlowServing
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Spec
from fairlap.request.fields.server_address import ServerAddress


# A server of one's own: ``{"inputs": {name: nested lists}}`` is answered by ``{"outputs": {name: nested lists}}``.
class PlainJson:
    title = "plain JSON"
    tensors = "JSON"
    server = ""

    def __init__(self, connection: KeptConnection, options: HttpOptions) -> None:
        if options.tensors == BINARY:
            raise Unsupported(f"{self.title} has no other tensors; leave tensors={BINARY} out")
        self._connection = connection

    def model(self) -> ServedModel | None:
        """Return None, for lack of metadata: only the answers are checked."""
        return None

    def want(self, outputs: Iterable[str]) -> None:
        """All come."""

    def ask(self, inputs: Arrays) -> dict[str, np.ndarray]:
        body = msgspec.json.encode({"inputs": {name: array.tolist() for name, array in inputs.items()}})
        answer = self._connection.post(self._connection.address.path, body, {"Content-Type": "application/json"})
        outputs = json_object(answer.body).get("outputs")
        if not isinstance(outputs, dict):
            raise BadTensors("it has no outputs by name")
        return {name: array_of(data, np.dtype(np.float32), name) for name, data in outputs.items()}


class ServerProtocol(Protocol):
    """How one kind of server is spoken to. ``ask`` raises BadTensors for an answer that is none."""

    title: str

    @property
    def server(self) -> str: ...  # as it names itself

    @property
    def tensors(self) -> str: ...  # how they are sent

    def model(self) -> ServedModel | None: ...  # None without metadata

    def want(self, outputs: Iterable[str]) -> None: ...  # before the first call

    def ask(self, inputs: Arrays) -> dict[str, np.ndarray]: ...


class HttpClient:
    """A model on a server, whose names, shapes and types are compared with the server's metadata at once.

    Raises Unsupported for another model, and ServerFailed for a server that cannot be spoken to.
    """

    def __init__(self, address: ServerAddress, options: HttpOptions, spec: Spec, batch: int) -> None:
        self._connection: KeptConnection | GrpcConnection
        self.protocol: ServerProtocol
        if address.is_by_grpc:
            self._connection = by_grpc = GrpcConnection(address, options.timeout_s)
            self.protocol = OpenInferenceByGrpc(by_grpc, options.model, options)
        elif options.model:
            raise Unsupported("model= is of servers by grpc; by http the model is part of the address")
        else:
            self._connection = connection = KeptConnection(address, options.timeout_s)
            self.protocol = (
                OpenInference.at(connection, options)
                or TensorFlowServing.at(connection, options)
                or PlainJson(connection, options)
            )
        served = self.protocol.model()
        self.has_metadata = served is not None
        self._names = own_names(spec) if served is None else matching_names(spec, batch, served)
        self.protocol.want(self._names.outputs.values())

    @property
    def in_force(self) -> dict[str, str]:
        return {
            "protocol": f"{self.protocol.title}, tensors as {self.protocol.tensors}",
            "connection": "kept" if self._connection.is_kept else "a new one for each call",
        }

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        """Make a call that includes the encoding, since a client has new inputs each time."""
        sent = {served: np.ascontiguousarray(inputs[name]) for name, served in self._names.inputs.items()}
        return partial(self._call, sent)

    def outputs(self, answer: Arrays) -> Answers:
        return {name: as_float32(answer[served]) for name, served in self._names.outputs.items()}

    def _call(self, sent: Arrays) -> dict[str, np.ndarray]:
        try:
            answer = self.protocol.ask(sent)
        except BadTensors as error:
            raise ServerFailed(f"the server's answer cannot be read: {error}") from None
        for served in self._names.outputs.values():
            if served not in answer:
                raise ServerFailed(f"the server's answer lacks {served}")
        return answer
