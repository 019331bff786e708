"""What an API is to a load: how it is asked for a number of tokens, and what each piece of its answers says.

A protocol is a file here and a line in ``servers.py``. It keeps no state: times, counts and ends of answers are found
from its pieces in ``answers.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from fairlap.scenarios.streams.clients.events import EventReader, LineReader
from fairlap.scenarios.streams.prompts import Prompt

Fields = Literal["unpenalised", "forced", "counted", "plain", "inputs"]
"""What a request has besides prompt, length and temperature 0: the forced length, counts of tokens and no penalty of
repeated ones, the first two, counts alone, or nothing. ``inputs`` has what ``plain`` has in other places."""

FORCED: Final[tuple[Fields, ...]] = ("unpenalised", "forced")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


@dataclass(frozen=True)
class Piece:
    """What came at once. Numbers are None where the server does not say them."""

    text: str = ""
    tokens: int | None = None  # that came with it
    tokens_so_far: int | None = None  # of the answer, with those of this piece
    all_tokens: int | None = None  # of the answer, said where it ends
    prompt_tokens: int | None = None
    cached_tokens: int | None = None  # of the prompt
    finish: str = ""  # "length" where the answer was cut at the length that was asked for
    is_last: bool | None = None
    error: str | None = None  # in place of the rest of the answer


class Protocol(ABC):
    title: ClassVar[str]  # of the API, in messages
    fields: ClassVar[tuple[Fields, ...]] = ("plain",)
    """In the order in which they are tried: the first that a server does not refuse are sent to it."""
    takes_chats: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True
    says_its_end: ClassVar[bool] = True
    """Whether an answer that ends without a finish or a last piece is half an answer."""

    def why_not(self, prompt: Prompt) -> str:
        """Why a prompt cannot be asked; empty where it can."""
        return ""

    @abstractmethod
    def body(self, model: str, prompt: Prompt, tokens: int, fields: Fields) -> bytes: ...

    @abstractmethod
    def piece(self, data: bytes) -> Piece:
        """Read what came at once; raise what msgspec raises where that is not of this API."""


class HttpProtocol(Protocol):
    content_type: ClassVar[str] = "text/event-stream"
    reader: ClassVar[type[EventReader] | type[LineReader]] = EventReader
    end: ClassVar[bytes | None] = None  # what comes in place of a piece when the answer is whole

    @abstractmethod
    def endpoint(self, path: str, model: str) -> str:
        """Return where requests are sent. ``path`` is that of the address, without a slash at its end."""

    @abstractmethod
    def probe(self, path: str, model: str) -> str:
        """Return what can be asked for without work for the model."""


def messages_of(prompt: Prompt) -> tuple[dict[str, Any], ...]:
    """Return those of a chat; a text is what its user says."""
    return prompt.messages or ({"role": "user", "content": prompt.prompt},)


def error_text(error: object) -> str:
    """Find the message in an error: a text, or an object with a message."""
    return str(error.get("message", error) if isinstance(error, dict) else error)
