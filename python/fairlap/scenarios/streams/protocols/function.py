"""A function of the user's, ``package.module:ask``, in place of an API: it speaks any protocol, or runs a model here.

It takes a prompt, a text or the messages of a chat, and a number of tokens, and yields the pieces of the answer as they
come: each a token's text, or a text with the number of its tokens. What it raises is why there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Count, Fields, Piece, Protocol

Ask = Callable[[Any, int], Iterable[str | tuple[str, int]]]


class FunctionCall(msgspec.Struct, array_like=True):
    prompt: str | list[dict[str, Any]]
    tokens: int


class Yielded(msgspec.Struct, array_like=True):
    text: str
    tokens: Count | None = None


class FunctionProtocol(Protocol):
    title = "a function that yields texts"
    takes_chats = True
    needs_model = False
    says_its_end = False

    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
        return msgspec.json.encode(FunctionCall(prompt.prompt or list(prompt.messages or ()), tokens))

    def piece(self, data: bytes) -> Piece:
        found = msgspec.json.decode(data, type=Yielded)
        return Piece(text=found.text, tokens=found.tokens)
