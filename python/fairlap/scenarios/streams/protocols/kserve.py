"""The generate extension of KServe's protocol version 2 over REST, ``/v2/models/NAME/generate_stream``, as of Triton.

The Open Inference Protocol names the parameters and says that a piece is the last one (``done``); Triton ends its
stream without that. What Triton's vLLM backend adds is asked for first: a forced length, and with each piece how many
tokens it has and why the answer ended. Models whose length is an input instead of a parameter, as TensorRT-LLM's, get
it there (``inputs``).
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Count, Fields, HttpProtocol, Piece, error_text

_COUNTED = {"return_num_output_tokens": True, "return_finish_reason": True}
_UNFINISHED = ("", "None")


class _Event(msgspec.Struct):
    text_output: str | None = None
    done: bool | None = None
    num_output_tokens: Count | None = None
    finish_reason: str | None = None
    error: Any = None


class KServeGenerate(HttpProtocol):
    title = "KServe's generate extension"
    fields: ClassVar[tuple[Fields, ...]] = ("forced", "counted", "plain", "inputs")
    says_its_end = False

    def endpoint(self, path: str, model: str) -> str:
        return f"{path}/v2/models/{quote(model)}/generate_stream"

    def probe(self, path: str, model: str) -> str:
        return f"{path}/v2/health/ready"

    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        asked: dict[str, Any] = {"max_tokens": tokens, "temperature": 0, "stream": True}
        if fields == "inputs":
            return msgspec.json.encode({"text_input": prompt.prompt, **asked})
        if fields == "forced":
            asked |= {"min_tokens": tokens, "ignore_eos": True}
        added = {} if fields == "plain" else _COUNTED
        return msgspec.json.encode({"text_input": prompt.prompt, "parameters": asked, **added})

    def piece(self, data: bytes) -> Piece:
        event = msgspec.json.decode(data, type=_Event)
        if event.error is not None:
            return Piece(error=error_text(event.error))
        if event.text_output is None:
            raise msgspec.ValidationError("an event without text_output")
        finish = event.finish_reason or ""
        return Piece(
            text=event.text_output,
            tokens=event.num_output_tokens,
            finish="" if finish in _UNFINISHED else finish,
            is_last=event.done,
        )
