"""Requests to a function in place of a server: each text that it yields is stamped when it is there."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlap.engine.measurement import Notice
from fairlap.errors import described
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.streams.clients.client import (
    E_STREAM_ENDLESS,
    E_STREAM_EVENT,
    E_STREAM_TIMEOUT,
    RawAnswer,
    StreamFailed,
    most_events,
    now_ns,
)
from fairlap.scenarios.streams.clients.manner import USUAL, Manner
from fairlap.scenarios.streams.protocols.function import FunctionCall
from fairlap.scenarios.streams.servers import StreamServer, shown

E_STREAM_FUNCTION = "E_STREAM_FUNCTION"


class FunctionClient:
    """The function cannot be interrupted: its time is looked at when it yields."""

    def __init__(self, server: StreamServer, tokens: int) -> None:
        assert server.function is not None
        self._server, self._function = server, server.function
        self._most_events = most_events(tokens)
        self.http_version = ""

    def connect(self) -> bool:
        return True

    def close(self) -> None: ...

    def ask(self, body: bytes, manner: Manner = USUAL) -> RawAnswer:
        call = msgspec.json.decode(body, type=FunctionCall)
        answer, yielded = RawAnswer(now_ns()), []
        try:
            for piece in self._function(call.prompt, call.tokens):
                yielded.append((now_ns(), piece))
                self._require_bounded(answer.began_ns, yielded)
                if manner.leaves(len(yielded)):
                    answer.has_left = True  # what it yields from is closed
                    break
        except StreamFailed as failed:
            answer.failure = Notice(failed.code, str(failed))
        except Exception as error:
            answer.failure = self._failure(f"raised {shown(described(error), self._server)}", E_STREAM_FUNCTION)
        answer.ended_ns = now_ns()
        if answer.failure is None:
            self._keep(yielded, answer)
        return answer

    def _require_bounded(self, began_ns: int, yielded: list[tuple[int, Any]]) -> None:
        timeout_s = self._server.timeout_s
        if len(yielded) > self._most_events:
            what = f"goes on after {len(yielded):,} texts, more than it was asked for"
            raise StreamFailed(f"{self._server.subject} {what}", code=E_STREAM_ENDLESS)
        if yielded[-1][0] - began_ns > 1e9 * timeout_s:
            what = f"did not end its answer within {timeout_s:g} s"
            raise StreamFailed(f"{self._server.subject} {what}", code=E_STREAM_TIMEOUT)

    def _keep(self, yielded: list[tuple[int, Any]], answer: RawAnswer) -> None:
        for came_ns, piece in yielded:
            try:
                data = msgspec.json.encode([piece] if isinstance(piece, str) else piece)
                self._server.protocol.piece(data)
            except (*NOT_THE_DOCUMENT, TypeError, ValueError):
                what = shown(f"yielded {piece!r}, which is neither a text nor (text, tokens)", self._server)
                answer.failure = self._failure(what, E_STREAM_EVENT)
                return
            answer.events.append((came_ns, data))

    def _failure(self, what: str, code: str) -> Notice:
        return Notice(code, f"{self._server.subject} {what}")
