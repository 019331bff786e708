"""The open inference protocol, version 2, which KServe, Triton and OpenVINO Model Server speak."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from fairlap.errors import shown
from fairlap.frameworks.adapter_parts.http.connection import KeptConnection, RefusedByServer
from fairlap.frameworks.adapter_parts.http.http_options import BINARY, HttpOptions
from fairlap.frameworks.adapter_parts.http.served_model import ServedModel, ServedTensor
from fairlap.frameworks.adapter_parts.http.tensor_messages import (
    DATATYPES,
    BadTensors,
    json_object,
    message_of,
    tensors_in,
)
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.arrays import Arrays

BINARY_EXTENSION = "binary_tensor_data"
_PATH = re.compile(r"(?P<root>.*/v2)(?P<model>/models/[^/]+(/versions/[^/]+)?)(/infer)?/?")


class OpenInference:
    title = "open inference protocol v2"

    def __init__(self, connection: KeptConnection, root: str, model: str, options: HttpOptions) -> None:
        self._connection, self._path = connection, root + model
        about = self._about(root)
        named = (about.get("name"), about.get("version"))
        self.server = " ".join(each for each in named if isinstance(each, str))
        extensions = about.get("extensions")
        self._binary = isinstance(extensions, list) and BINARY_EXTENSION in extensions
        if options.tensors == BINARY and not self._binary:
            raise Unsupported(f"the server does not offer {BINARY_EXTENSION}; leave tensors={BINARY} out")
        self._binary = self._binary and options.tensors in ("", BINARY)
        self._wanted: dict[str, Any] = {}

    @classmethod
    def at(cls, connection: KeptConnection, options: HttpOptions) -> OpenInference | None:
        """None for an address of another protocol."""
        found = _PATH.fullmatch(connection.address.path)
        return cls(connection, found["root"], found["model"], options) if found else None

    @property
    def tensors(self) -> str:
        return "raw bytes" if self._binary else "JSON"

    def model(self) -> ServedModel | None:
        found = self._metadata(self._path)
        inputs, outputs = (_tensors(found.get(place)) for place in ("inputs", "outputs"))
        return ServedModel(inputs, outputs) if inputs and outputs else None  # some servers leave them out

    def want(self, outputs: Iterable[str]) -> None:
        self._wanted = {"outputs": [{"name": name, "parameters": {"binary_data": self._binary}} for name in outputs]}
        if not self._binary:
            self._wanted = {"outputs": [{"name": each["name"]} for each in self._wanted["outputs"]]}

    def ask(self, inputs: Arrays) -> dict[str, np.ndarray]:
        body, headers = message_of("inputs", inputs, self._wanted, binary=self._binary)
        answer = self._connection.post(f"{self._path}/infer", body, headers)
        return tensors_in("outputs", answer.body, answer.headers)[0]

    def _about(self, root: str) -> dict[str, Any]:
        """Read the server's metadata, or return none: some servers describe only their models."""
        try:
            return self._metadata(root)
        except RefusedByServer:
            return {}

    def _metadata(self, path: str) -> dict[str, Any]:
        try:
            return json_object(self._connection.get(path).body)
        except BadTensors as error:
            raise ServerFailed(f"the server's metadata at {path} cannot be read: {error}") from None


def _tensors(listed: Any) -> tuple[ServedTensor, ...]:
    if not listed:
        return ()
    try:
        return tuple(
            ServedTensor(str(each["name"]), _dtype(each), tuple(int(size) for size in each["shape"])) for each in listed
        )
    except (KeyError, TypeError, ValueError):
        raise ServerFailed(f"the server's metadata describes its tensors as {shown(listed)}") from None


def _dtype(tensor: Any) -> str:
    if tensor["datatype"] not in DATATYPES:
        raise Unsupported(f"the server's {tensor['name']} is {shown(tensor['datatype'])}, which is not a number here")
    return DATATYPES[tensor["datatype"]]
