"""The API of Text Generation Inference, ``/generate_stream``, as its OpenAPI document describes it.

Each event has one token. A temperature must be above 0 there, so greedy answers are those that are not sampled; their
length cannot be forced. A server has one model, so that requests name none.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Count, Fields, HttpProtocol, Piece, error_text


class _Token(msgspec.Struct):
    text: str
    special: bool = False  # such as the one that ends the text, of which it is no part


class _Details(msgspec.Struct):
    finish_reason: str
    generated_tokens: Count
    input_length: Count | None = None


class _Event(msgspec.Struct):
    token: _Token | None = None
    details: _Details | None = None
    error: Any = None


class TextGenerationInference(HttpProtocol):
    title = "the API of Text Generation Inference"
    needs_model = False

    def endpoint(self, path: str, model: str) -> str:
        return f"{path}/generate_stream"

    def probe(self, path: str, model: str) -> str:
        return f"{path}/info"

    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        parameters = {"max_new_tokens": tokens, "do_sample": False, "return_full_text": False, "details": True}
        return msgspec.json.encode({"inputs": prompt.prompt, "parameters": parameters})

    def piece(self, data: bytes) -> Piece:
        event = msgspec.json.decode(data, type=_Event)
        if event.error is not None:
            return Piece(error=error_text(event.error))
        if event.token is None:
            raise msgspec.ValidationError("an event without a token")
        details = event.details
        return Piece(
            text="" if event.token.special else event.token.text,
            tokens=1,
            all_tokens=details.generated_tokens if details else None,
            prompt_tokens=details.input_length if details else None,
            finish=details.finish_reason if details else "",
        )
