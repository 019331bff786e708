"""The REST interface of TensorFlow Serving: ``/v1/models/x:predict``, with whole tensors in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import shown
from fairlap.frameworks.adapter_parts.http.connection import KeptConnection
from fairlap.frameworks.adapter_parts.http.http_options import BINARY, HttpOptions
from fairlap.frameworks.adapter_parts.http.served_model import ServedModel, ServedTensor
from fairlap.frameworks.adapter_parts.http.tensor_messages import BadTensors, array_of, json_object
from fairlap.frameworks.contract import Unsupported
from fairlap.frameworks.contract_parts.called_programs import ServerFailed
from fairlap.models.arrays import Arrays

SIGNATURE = "serving_default"
_PATH = re.compile(r"(?P<model>.*/v1/models/[^/:]+(/(versions|labels)/[^/:]+)?)(:predict)?/?")
_DTYPES = {
    "DT_BOOL": "bool",
    "DT_DOUBLE": "float64",
    "DT_FLOAT": "float32",
    "DT_HALF": "float16",
    "DT_INT8": "int8",
    "DT_INT16": "int16",
    "DT_INT32": "int32",
    "DT_INT64": "int64",
    "DT_UINT8": "uint8",
}


class TensorFlowServing:
    title = "TensorFlow Serving's REST"
    tensors = "JSON"
    server = ""  # it does not name itself

    def __init__(self, connection: KeptConnection, path: str) -> None:
        self._connection, self._path = connection, path
        self._dtypes: dict[str, str] = {}
        self._outputs: tuple[str, ...] = ()

    @classmethod
    def at(cls, connection: KeptConnection, options: HttpOptions) -> TensorFlowServing | None:
        """None for an address of another protocol."""
        found = _PATH.fullmatch(connection.address.path)
        if found is None:
            return None
        if options.tensors == BINARY:
            raise Unsupported(f"{cls.title} takes JSON here; leave tensors={BINARY} out")
        return cls(connection, found["model"])

    def model(self) -> ServedModel | None:
        try:
            found: Any = json_object(self._connection.get(f"{self._path}/metadata").body)
        except BadTensors as error:
            raise ServerFailed(f"the server's metadata cannot be read: {error}") from None
        try:
            signatures = found["metadata"]["signature_def"]["signature_def"]
            if SIGNATURE not in signatures:
                raise Unsupported(f"the server's model has no signature {SIGNATURE}; it has {', '.join(signatures)}")
            inputs, outputs = (_tensors(signatures[SIGNATURE][place]) for place in ("inputs", "outputs"))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ServerFailed(f"the server's metadata has no signatures: {shown(found)}") from None
        self._dtypes = {each.name: each.dtype for each in outputs}
        return ServedModel(inputs, outputs)

    def want(self, outputs: Iterable[str]) -> None:
        """All come; a single one without its name."""
        self._outputs = tuple(self._dtypes) or tuple(outputs)

    def ask(self, inputs: Arrays) -> dict[str, np.ndarray]:
        sent = {"signature_name": SIGNATURE, "inputs": {name: array.tolist() for name, array in inputs.items()}}
        answer = self._connection.post(
            f"{self._path}:predict", msgspec.json.encode(sent), {"Content-Type": "application/json"}
        )
        found = json_object(answer.body)
        if "outputs" not in found:
            raise BadTensors("it has no outputs")
        outputs = found["outputs"] if isinstance(found["outputs"], dict) else {self._outputs[0]: found["outputs"]}
        return {
            name: array_of(data, np.dtype(self._dtypes.get(name, "float32")), name) for name, data in outputs.items()
        }


def _tensors(listed: dict[str, Any]) -> tuple[ServedTensor, ...]:
    return tuple(ServedTensor(name, _dtype(name, each), _shape(each["tensor_shape"])) for name, each in listed.items())


def _dtype(name: str, tensor: Any) -> str:
    if tensor["dtype"] not in _DTYPES:
        raise Unsupported(f"the server's {name} is {shown(tensor['dtype'])}, which is not a number here")
    return _DTYPES[tensor["dtype"]]


def _shape(found: Any) -> tuple[int, ...] | None:
    return None if found.get("unknown_rank") else tuple(int(axis["size"]) for axis in found.get("dim", ()))
