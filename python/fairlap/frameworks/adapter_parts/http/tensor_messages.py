"""Tensors in the messages of the open inference protocol, version 2.

Requests and answers write them alike: in JSON, or with the binary extension as raw bytes after it.

https://github.com/kserve/open-inference-protocol; the extension is documented with Triton's HTTP protocol.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import numpy as np

from fairlap.errors import shown
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.models.arrays import Arrays

JSON_LENGTH = "Inference-Header-Content-Length"
DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
NAMES = {dtype: name for name, dtype in DATATYPES.items()}
_encode = msgspec.json.Encoder().encode


class BadTensors(Exception):
    """A message without the tensors that it should have."""


def message_of(place: str, arrays: Arrays, more: Mapping[str, Any], *, binary: bool) -> tuple[bytes, dict[str, str]]:
    """Encode the body and its headers; ``place`` is "inputs" or "outputs", and the arrays are C-contiguous."""
    entries: list[dict[str, Any]] = []
    for name, array in arrays.items():
        entry: dict[str, Any] = {"name": name, "shape": array.shape, "datatype": NAMES[array.dtype.name]}
        if binary:
            entry["parameters"] = {"binary_data_size": array.nbytes}
        else:
            entry["data"] = array.ravel().tolist()
        entries.append(entry)
    header = _encode({**more, place: entries})
    if not binary:
        return header, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH: str(len(header))}
    return b"".join([header, *(array.data for array in arrays.values())]), headers


class Headers(Protocol):
    """Those of a message, whose names are found in any case."""

    def get(self, name: str, /) -> str | None: ...


def tensors_in(place: str, body: bytes, headers: Headers) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Decode the tensors by name, and everything that the JSON holds."""
    length = headers.get(JSON_LENGTH)
    if length is not None and not (length.isdecimal() and int(length) <= len(body)):
        raise BadTensors(f"{JSON_LENGTH} is {shown(length)} in a message of {len(body):,} bytes")
    start = len(body) if length is None else int(length)
    message = json_object(body[:start])
    entries = message.get(place)
    if not isinstance(entries, list):
        raise BadTensors(f"it has no list of {place}")
    found = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise BadTensors(f"one of its {place} has no name")
        dtype, shape = _type_in(entry)
        parameters = entry.get("parameters")
        size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
        if size is None:
            found[entry["name"]] = array_of(entry.get("data"), dtype, entry["name"], shape)
            continue
        if size != math.prod(shape) * dtype.itemsize or start + size > len(body):
            raise BadTensors(f"{entry['name']} of {dtype} {list(shape)} has {shown(size)} bytes")
        found[entry["name"]] = np.frombuffer(body, dtype, math.prod(shape), start).reshape(shape)
        start += size
    return found, message


def json_object(text: bytes) -> dict[str, Any]:
    """Decode a JSON object, also one with NaN, which is not JSON but what some servers write."""
    try:
        found = msgspec.json.decode(text)
    except NOT_THE_DOCUMENT:
        found = _with_nan(text)
    if not isinstance(found, dict):
        raise BadTensors(f"it is not a JSON object: {shown(text[:40])}")
    return found


def array_of(data: Any, dtype: np.dtype[Any], name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """From nested or flat lists; what JSON calls null is NaN."""
    try:
        array = np.asarray(data, dtype=dtype)
        return array if shape is None else array.reshape(shape)
    except (ValueError, TypeError, OverflowError):
        needed = "" if shape is None else f" {list(shape)}"
        raise BadTensors(f"{name} is not an array of {dtype}{needed}") from None


def _type_in(entry: dict[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    name, datatype, shape = entry["name"], entry.get("datatype"), entry.get("shape")
    if datatype not in DATATYPES:
        raise BadTensors(f"{name} has the datatype {shown(datatype)}, which is not one of numbers")
    if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise BadTensors(f"{name} has the shape {shown(shape)}")
    return np.dtype(DATATYPES[datatype]), tuple(shape)


def _with_nan(text: bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
