"""A server of one's own: ``{"inputs": {name: nested lists}}`` is answered by ``{"outputs": {name: nested lists}}``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from fairlap.frameworks.adapter_parts.http.connection import KeptConnection
from fairlap.frameworks.adapter_parts.http.http_options import BINARY, HttpOptions
from fairlap.frameworks.adapter_parts.http.served_model import ServedModel
from fairlap.frameworks.adapter_parts.http.tensor_messages import BadTensors, array_of, json_object
from fairlap.frameworks.contract import Unsupported
from fairlap.models.arrays import Arrays


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
