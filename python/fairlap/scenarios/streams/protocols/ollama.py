"""Ollama's API, ``/api/generate`` and ``/api/chat``: a line of JSON for each piece, and a last one with the counts.

Its documentation says that models repeat themselves less than is greedy unless the penalty for it is 1, and that a text
is put into the model's template unless it is raw; other servers do neither. The length cannot be forced.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import msgspec

from fairlap.scenarios.streams.clients.events import LineReader
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Count, Fields, HttpProtocol, Piece, error_text, messages_of


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None


class _Line(msgspec.Struct):
    response: str | None = None
    thinking: str | None = None
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    eval_count: Count | None = None
    prompt_eval_count: Count | None = None
    error: Any = None


class _Ollama(HttpProtocol):
    title = "Ollama's API"
    content_type = "application/x-ndjson"
    reader = LineReader

    @abstractmethod
    def asked(self, prompt: Prompt) -> dict[str, Any]: ...

    def probe(self, path: str, model: str) -> str:
        return f"{path}/api/version"

    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        options = {"num_predict": tokens, "temperature": 0, "repeat_penalty": 1.0}
        return msgspec.json.encode({"model": model, **self.asked(prompt), "stream": True, "options": options})

    def piece(self, data: bytes) -> Piece:
        line = msgspec.json.decode(data, type=_Line)
        if line.error is not None:
            return Piece(error=error_text(line.error))
        texts = [line.thinking, line.response]
        if line.message is not None:
            texts += [line.message.thinking, line.message.content]
        return Piece(
            text="".join(filter(None, texts)),
            all_tokens=line.eval_count,
            prompt_tokens=line.prompt_eval_count,
            finish=line.done_reason or "",
            is_last=line.done,
        )


class OllamaGenerate(_Ollama):
    def endpoint(self, path: str, model: str) -> str:
        return f"{path}/api/generate"

    def asked(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.prompt, "raw": True}


class OllamaChat(_Ollama):
    takes_chats = True

    def why_not(self, prompt: Prompt) -> str:
        has_texts = all(isinstance(each.get("content"), str) for each in messages_of(prompt))
        return "" if has_texts else "takes messages whose content is a text"

    def endpoint(self, path: str, model: str) -> str:
        return f"{path}/api/chat"

    def asked(self, prompt: Prompt) -> dict[str, Any]:
        return {"messages": messages_of(prompt)}
