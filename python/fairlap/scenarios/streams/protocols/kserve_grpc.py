"""The streaming call of the open inference protocol over gRPC, ``ModelStreamInfer``, as Triton and MLServer have it.

The protocol says how tensors are sent, not what they are called. What Triton's vLLM backend calls them is asked for
first: a forced length, and with each piece how many tokens it has and why the answer ended. Others get the length as a
parameter of the request, or as a tensor, as of TensorRT-LLM.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar

import msgspec

from fairlap.frameworks.adapter_parts.grpc.messages import NotAMessage, messages, name_and_version, parsed
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Fields, Piece, Protocol

_TEXT, _FINISH, _COUNT = "text_output", "finish_reason", "num_output_tokens"
_IS_LAST = "triton_final_response"
_UNFINISHED = ("", "None")
_LENGTH = struct.Struct("<I")


class KServeByGrpc(Protocol):
    title = "KServe's protocol by gRPC"
    fields: ClassVar[tuple[Fields, ...]] = ("forced", "counted", "plain", "inputs")
    says_its_end = False  # unless the server marks its last piece

    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        name, version = name_and_version(model)
        request = messages().Request(model_name=name, model_version=version)
        request.parameters["triton_enable_empty_final_response"].bool_param = True
        shape = (1, 1) if fields == "inputs" else (1,)
        _add_bytes(request, "text_input", str(prompt.prompt), shape)
        if fields == "inputs":
            _add(request, "max_tokens", "INT32", shape).int_contents.append(tokens)
            _add(request, "temperature", "FP32", shape).fp32_contents.append(0.0)
            _add(request, "stream", "BOOL", shape).bool_contents.append(True)
        else:  # as parameters in any case: MLServer skips inputs that a model does not read
            request.parameters["max_tokens"].int64_param = tokens
            request.parameters["temperature"].int64_param = 0
        if fields in ("forced", "counted"):
            self._add_sampling(request, tokens, is_forced=fields == "forced")
        found: bytes = request.SerializeToString()
        return found

    def _add_sampling(self, request: Any, tokens: int, *, is_forced: bool) -> None:
        sampling: dict[str, Any] = {"max_tokens": tokens, "temperature": 0}
        if is_forced:
            sampling |= {"min_tokens": tokens, "ignore_eos": True}
        _add_bytes(request, "sampling_parameters", msgspec.json.encode(sampling).decode(), (1,))
        for name in ("stream", "exclude_input_in_output", "return_finish_reason", "return_num_output_tokens"):
            _add(request, name, "BOOL", (1,)).bool_contents.append(True)

    def piece(self, data: bytes) -> Piece:
        try:
            streamed = parsed(messages().StreamedAnswer, data)
            if streamed.outputs:  # as MLServer writes it
                return _piece(streamed)
            if streamed.error_message_or_model_name:
                return Piece(error=streamed.error_message_or_model_name)
            return _piece(parsed(messages().Answer, streamed.answer_or_model_version))
        except NotAMessage as error:
            raise msgspec.DecodeError(str(error)) from None


def _piece(answer: Any) -> Piece:
    is_last = answer.parameters[_IS_LAST].bool_param if _IS_LAST in answer.parameters else None
    values = {tensor.name: _values(answer, place) for place, tensor in enumerate(answer.outputs)}
    texts = [each.name for each in answer.outputs if each.datatype == "BYTES" and each.name != _FINISH]
    text_of = _TEXT if _TEXT in texts else next(iter(texts), "")
    if not text_of and not is_last:
        raise msgspec.ValidationError("an answer without a text")
    finish = "".join(map(_text, values.get(_FINISH, ())))
    counts = [each for each in values.get(_COUNT, ()) if isinstance(each, int)]
    return Piece(
        text="".join(map(_text, values.get(text_of, ()))),
        tokens=sum(counts) if counts else None,
        finish="" if finish in _UNFINISHED else finish,
        is_last=is_last,
    )


def _values(answer: Any, place: int) -> list[Any]:
    """Return those of a tensor of texts or counts; of other tensors none."""
    tensor, raw = answer.outputs[place], answer.raw_output_contents
    if tensor.datatype == "BYTES":
        return _texts_in(raw[place]) if place < len(raw) else list(tensor.contents.bytes_contents)
    if tensor.datatype not in ("UINT32", "INT32"):
        return []
    if place < len(raw):
        return [number for (number,) in struct.iter_unpack("<i", raw[place])] if len(raw[place]) % 4 == 0 else []
    return [*tensor.contents.uint_contents, *tensor.contents.int_contents]


def _texts_in(raw: bytes) -> list[bytes]:
    """Split raw texts, each of which has its length before it."""
    found, place = [], 0
    while place < len(raw):
        if len(raw) - place < _LENGTH.size:
            raise msgspec.ValidationError("a text that is cut off")
        [length] = _LENGTH.unpack_from(raw, place)
        place += _LENGTH.size
        if len(raw) - place < length:
            raise msgspec.ValidationError("a text that is cut off")
        found.append(raw[place : place + length])
        place += length
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _add(request: Any, name: str, datatype: str, shape: tuple[int, ...]) -> Any:
    return request.inputs.add(name=name, datatype=datatype, shape=shape).contents


def _add_bytes(request: Any, name: str, text: str, shape: tuple[int, ...]) -> None:
    _add(request, name, "BYTES", shape).bytes_contents.append(text.encode())
