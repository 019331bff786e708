"""OpenAI's completions and chat completions: what is sent, and what the events of an answer say.

Servers differ in what they understand besides: vLLM, SGLang and others force the number of tokens and count them in
each event, and refuse neither; a server that refuses a field gets a request without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.streams.client import E_STREAM_CUT, E_STREAM_EVENT, RawAnswer
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.servers import StreamServer

Fields = Literal["forced", "counted", "plain"]
"""What a request has besides prompt, length and temperature 0: all, the usage at the end, or nothing."""

FIELDS: tuple[Fields, ...] = ("forced", "counted", "plain")
_ADDED: dict[Fields, dict[str, Any]] = {
    "forced": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    "counted": {"stream_options": {"include_usage": True}},
    "plain": {},
}

CountedBy = Literal["events' usage", "usage", "events"]
"""How tokens were counted: by the server in each event, by the server at the end, or as one for each event."""


def body_of(server: StreamServer, prompt: Prompt, tokens: int, fields: Fields) -> bytes:
    if server.api == "chat":
        asked: dict[str, Any] = {"messages": prompt.messages or ({"role": "user", "content": prompt.prompt},)}
    else:
        asked = {"prompt": prompt.prompt}
    forced = {"min_tokens": tokens, "ignore_eos": True} if fields == "forced" else {}
    return msgspec.json.encode(
        {
            "model": server.model,
            **asked,
            "max_tokens": tokens,
            "temperature": 0,
            "stream": True,
            **forced,
            **_ADDED[fields],
        }
    )


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


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class _PromptDetails(msgspec.Struct):
    cached_tokens: _Count | None = None


class _Usage(msgspec.Struct):
    completion_tokens: _Count = 0
    prompt_tokens: _Count = 0
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int | None:
        return None if self.prompt_tokens_details is None else self.prompt_tokens_details.cached_tokens


class _Event(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    usage: _Usage | None = None
    error: Any = None


@dataclass(frozen=True)
class Answer:
    """Each arrival brought at least a token."""

    came_ns: tuple[int, ...] = ()
    arrived: tuple[int, ...] = ()  # how many tokens came then
    text: str = ""
    tokens: int = 0
    counted_by: CountedBy = "events"
    finish: str = ""  # "length" where it was cut at the length that was asked for
    prompt_tokens: int = 0
    cached_tokens: int | None = None  # of the prompt; None where the server does not say
    asked_tokens: int = 0
    failure: Notice | None = None

    @property
    def arrivals_are_exact(self) -> bool:
        """Whether it is known how many tokens each arrival brought."""
        return self.counted_by == "events' usage" or len(self.came_ns) == self.tokens


@dataclass
class _Reading:
    came_ns: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    counted: int = 0  # so far, by the server
    of_events: bool = True  # whether every event with text says how many there are so far
    usage: _Usage | None = None
    finish: str = ""

    def take(self, came_ns: int, event: _Event) -> None:
        text = "".join((each.text or "") + (each.delta.text if each.delta else "") for each in event.choices)
        self.finish = next((each.finish_reason for each in event.choices if each.finish_reason), self.finish)
        self.usage = event.usage or self.usage
        counts = event.usage is not None and bool(event.choices)
        more = event.usage.completion_tokens - self.counted if counts and event.usage is not None else 0
        self.counted += max(more, 0)
        if not text and more <= 0:
            return
        self.of_events = self.of_events and counts
        self.came_ns.append(came_ns)
        self.arrived.append(more if more > 0 else 1)
        self.pieces.append(text)

    def answer(self) -> Answer:
        total = self.usage.completion_tokens if self.usage is not None else 0
        counted_by: CountedBy = "usage" if total else "events"
        arrived = [1] * len(self.came_ns)
        if total and self.of_events and sum(self.arrived) == total:
            counted_by, arrived = "events' usage", self.arrived
        return Answer(
            came_ns=tuple(self.came_ns),
            arrived=tuple(arrived),
            text="".join(self.pieces),
            tokens=total or len(self.came_ns),
            counted_by=counted_by,
            finish=self.finish,
            prompt_tokens=0 if self.usage is None else self.usage.prompt_tokens,
            cached_tokens=None if self.usage is None else self.usage.cached_tokens,
        )


def answer_in(raw: RawAnswer, host: str) -> Answer:
    """Read the events of an answer; one that is not whole is a failure with what it was."""
    if raw.failure is not None:
        return Answer(failure=raw.failure)
    reading = _Reading()
    for came_ns, data in raw.events:
        try:
            event = msgspec.json.decode(data, type=_Event)
        except NOT_THE_DOCUMENT:
            return _failed(host, "sent an event that is not one of OpenAI's API", E_STREAM_EVENT)
        if event.error is not None:
            return _failed(host, "sent an error in the middle of its answer", E_STREAM_EVENT)
        reading.take(came_ns, event)
    if not raw.is_done and not reading.finish:
        return _failed(
            host,
            f"ended its answer after {quantity_text.count(len(raw.events), 'event')} without saying so",
            E_STREAM_CUT,
        )
    if not reading.came_ns:
        return _failed(host, "answered with no token", E_STREAM_EVENT)
    return reading.answer()


def _failed(host: str, what: str, code: str) -> Answer:
    return Answer(failure=Notice(code, f"the server at {host} {what}"))
