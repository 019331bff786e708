"""OpenAI's completions and chat completions.

Servers differ in what they understand besides: vLLM, SGLang and others force the number of tokens and count them in
each event, and refuse neither; a server that refuses a field gets a request without it. llama-cpp-python's makes
repeated tokens less likely unless a request says otherwise, and then its greedy answers are another model's.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import msgspec

from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import (
    FORCED,
    Count,
    Fields,
    HttpProtocol,
    Piece,
    error_text,
    messages_of,
)

_COUNTED_IN_EVENTS = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
_ADDED: dict[Fields, dict[str, Any]] = {
    "unpenalised": {**_COUNTED_IN_EVENTS, "repeat_penalty": 1.0},
    "forced": _COUNTED_IN_EVENTS,
    "counted": {"stream_options": {"include_usage": True}},
    "plain": {},
}


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @property
    def text(self) -> str:
        return (self.reasoning_content or self.reasoning or "") + (self.content or "")


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: Count | None = None


class _Usage(msgspec.Struct):
    completion_tokens: Count = 0
    prompt_tokens: Count = 0
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int | None:
        return None if self.prompt_tokens_details is None else self.prompt_tokens_details.cached_tokens


class _Event(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    usage: _Usage | None = None
    error: Any = None


class _OpenAI(HttpProtocol):
    title = "OpenAI's API"
    fields: ClassVar[tuple[Fields, ...]] = (*FORCED, "counted", "plain")
    end = b"[DONE]"

    @abstractmethod
    def asked(self, prompt: Prompt) -> dict[str, Any]: ...

    def probe(self, path: str, model: str) -> str:
        return f"{path}/models"

    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        forced = {"min_tokens": tokens, "ignore_eos": True} if fields in FORCED else {}
        return msgspec.json.encode(
            {
                "model": model,
                **self.asked(prompt),
                "max_tokens": tokens,
                "temperature": 0,
                "stream": True,
                **forced,
                **_ADDED[fields],
            }
        )

    def piece(self, data: bytes) -> Piece:
        event = msgspec.json.decode(data, type=_Event)
        used = event.usage
        return Piece(
            text="".join((each.text or "") + (each.delta.text if each.delta else "") for each in event.choices),
            tokens_so_far=used.completion_tokens if used and event.choices else None,
            all_tokens=used.completion_tokens if used else None,
            prompt_tokens=used.prompt_tokens if used else None,
            cached_tokens=used.cached_tokens if used else None,
            finish=next((each.finish_reason for each in event.choices if each.finish_reason), ""),
            error=None if event.error is None else error_text(event.error),
        )


class Completions(_OpenAI):
    def endpoint(self, path: str, model: str) -> str:
        return f"{path}/completions"

    def asked(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.prompt}


class Chat(_OpenAI):
    takes_chats = True

    def endpoint(self, path: str, model: str) -> str:
        return f"{path}/chat/completions"

    def asked(self, prompt: Prompt) -> dict[str, Any]:
        return {"messages": messages_of(prompt)}
