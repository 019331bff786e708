"""The answer to a request, from the pieces that came: its text, its tokens and when they came, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.streams.clients.client import E_STREAM_CUT, E_STREAM_EVENT, RawAnswer
from fairlap.scenarios.streams.clients.manner import LEFT
from fairlap.scenarios.streams.protocols.contract import Piece
from fairlap.scenarios.streams.servers import StreamServer, shown

CountedBy = Literal["events' usage", "usage", "events"]
"""How tokens were counted: by the server in each event, by the server at the end, or as one for each event."""


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
    are_counted: bool = True  # whether each piece with text says how many there are
    all_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    finish: str = ""
    is_last: bool | None = None

    def take(self, came_ns: int, piece: Piece) -> None:
        self.finish = piece.finish or self.finish
        self.all_tokens = self.all_tokens if piece.all_tokens is None else piece.all_tokens
        self.prompt_tokens = self.prompt_tokens if piece.prompt_tokens is None else piece.prompt_tokens
        self.cached_tokens = self.cached_tokens if piece.cached_tokens is None else piece.cached_tokens
        self.is_last = self.is_last if piece.is_last is None else piece.is_last
        more = piece.tokens or 0
        if piece.tokens_so_far is not None:
            more = max(piece.tokens_so_far - self.counted, 0)
        self.counted += more
        if not piece.text and not more:
            return
        self.are_counted = self.are_counted and (piece.tokens, piece.tokens_so_far) != (None, None)
        self.came_ns.append(came_ns)
        self.arrived.append(more or 1)
        self.pieces.append(piece.text)

    def answer(self) -> Answer:
        by_arrival = sum(self.arrived) if self.are_counted else 0
        total = self.all_tokens or by_arrival
        counted_by: CountedBy = "usage" if total else "events"
        arrived = [1] * len(self.came_ns)
        if total and total == by_arrival:
            counted_by, arrived = "events' usage", self.arrived
        return Answer(
            came_ns=tuple(self.came_ns),
            arrived=tuple(arrived),
            text="".join(self.pieces),
            tokens=total or len(self.came_ns),
            counted_by=counted_by,
            finish=self.finish,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
        )


def answer_in(raw: RawAnswer, server: StreamServer) -> Answer:
    """Read the pieces of an answer; one that is not whole is a failure with what it was."""
    if raw.failure is not None:
        return Answer(failure=raw.failure)
    if raw.has_left:
        return Answer(failure=Notice(LEFT, "its client hung up"))
    protocol, reading = server.protocol, _Reading()
    for came_ns, data in raw.events:
        try:
            piece = protocol.piece(data)
        except NOT_THE_DOCUMENT:
            return _failed(server, f"sent an event that is not one of {protocol.title}", E_STREAM_EVENT)
        if piece.error is not None:
            reason = shown(piece.error, server)
            return _failed(server, f"sent an error in the middle of its answer: {reason}", E_STREAM_EVENT)
        reading.take(came_ns, piece)
    ends_without = not protocol.says_its_end and reading.is_last is None
    if not (raw.is_done or reading.finish or reading.is_last or ends_without):
        events = quantity_text.count(len(raw.events), "event")
        return _failed(server, f"ended its answer after {events} without saying so", E_STREAM_CUT)
    if not reading.came_ns:
        return _failed(server, "answered with no token", E_STREAM_EVENT)
    return reading.answer()


def _failed(server: StreamServer, what: str, code: str) -> Answer:
    return Answer(failure=Notice(code, f"{server.subject} {what}"))
