"""Messages of the open inference protocol, version 2, over gRPC, made at run time from the numbers of their fields.

Names and numbers of fields are those of https://github.com/kserve/open-inference-protocol, with the streaming call that
Triton and MLServer add. Only what a client sends or reads is here; what else a server writes is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fairlap.errors import NotAvailable

_SERVICE = "/inference.GRPCInferenceService"
LIVE, ABOUT, MODEL = f"{_SERVICE}/ServerLive", f"{_SERVICE}/ServerMetadata", f"{_SERVICE}/ModelMetadata"
INFER, STREAM = f"{_SERVICE}/ModelInfer", f"{_SERVICE}/ModelStreamInfer"

_PACKAGE = "fairlap.open_inference"
_MODEL_AND_VERSION = {1: "string model_name", 2: "string model_version"}
_ANSWER = {3: "string id", 4: "map Parameter parameters", 5: "many Tensor outputs", 6: "many bytes raw_output_contents"}

_MESSAGES: Mapping[str, Mapping[int, str]] = {
    "Parameter": {
        1: "bool bool_param",
        2: "int64 int64_param",
        3: "string string_param",
        4: "double double_param",
        5: "uint64 uint64_param",
    },
    "Contents": {
        1: "many bool bool_contents",
        2: "many int32 int_contents",
        3: "many int64 int64_contents",
        4: "many uint32 uint_contents",
        5: "many uint64 uint64_contents",
        6: "many float fp32_contents",
        7: "many double fp64_contents",
        8: "many bytes bytes_contents",
    },
    "Tensor": {
        1: "string name",
        2: "string datatype",
        3: "many int64 shape",
        4: "map Parameter parameters",
        5: "one Contents contents",
    },
    "WantedOutput": {1: "string name"},
    "Request": {
        **_MODEL_AND_VERSION,
        3: "string id",
        4: "map Parameter parameters",
        5: "many Tensor inputs",
        6: "many WantedOutput outputs",
        7: "many bytes raw_input_contents",
    },
    "Answer": {**_MODEL_AND_VERSION, **_ANSWER},
    # Triton wraps an answer of a stream, with an error beside it; MLServer does not. Both fit into this.
    "StreamedAnswer": {1: "string error_message_or_model_name", 2: "bytes answer_or_model_version", **_ANSWER},
    "ModelName": {1: "string name", 2: "string version"},
    "Server": {1: "string name", 2: "string version"},
    "Model": {4: "many Tensor inputs", 5: "many Tensor outputs"},
}
"""The one of Parameter's fields that is set is its value."""

_ONE_OF = "Parameter"
_FIELD = re.compile(r"(?:(?P<many>many|one|map) )?(?P<kind>\w+) (?P<name>\w+)")


class NotAMessage(Exception):
    """Bytes are not a message of the kind that was expected."""


@dataclass(frozen=True)
class Messages:
    """Classes of protobuf, which have no types."""

    Request: Any
    Answer: Any
    StreamedAnswer: Any
    ModelName: Any
    Server: Any
    Model: Any


@cache
def messages() -> Messages:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise not_installed(error) from None
    file = descriptor_pb2.FileDescriptorProto(name="open_inference_of_fairlap.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == _ONE_OF:
            message.oneof_decl.add(name="value")
        for number, text in fields.items():
            _add_field(message, number, text)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return Messages(
        *(
            message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
            for name in Messages.__dataclass_fields__
        )
    )


def parsed(kind: Any, data: bytes) -> Any:
    """Read a message of one of these classes. Raises NotAMessage."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise NotAMessage(str(error)) from None


def _add_field(message: Any, number: int, text: str) -> None:
    found = _FIELD.fullmatch(text)
    assert found is not None, text
    many, kind, name = found.groups()
    field = message.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if many in ("many", "map") else field.LABEL_OPTIONAL
    if many == "map":
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, "string key")
        _add_field(entry, 2, f"one {kind} value")
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry.name}"
    elif kind in _MESSAGES:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
    if message.name == _ONE_OF:
        field.oneof_index = 0


def not_installed(error: ImportError) -> NotAvailable:
    return NotAvailable(f"servers by gRPC need grpcio and protobuf ({error}): pip install 'fairlap[grpc]'")


def name_and_version(model: str) -> tuple[str, str]:
    """Split ``NAME/versions/2``, as in addresses by HTTP."""
    name, _, version = model.partition("/versions/")
    return name, version
