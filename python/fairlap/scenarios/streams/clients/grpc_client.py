"""One connection by gRPC to a server that streams: it sends a request, and stamps each message as it comes.

A request is a stream of its own, of one message; as many as there are connections are open at once. gRPC's own thread
does not stand between: the thread that waits for a message reads it.
"""

from __future__ import annotations

import ssl
from typing import Any

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.errors import reason_of
from fairlap.frameworks.adapter_parts.grpc.channel import grpc_module, is_connected, open_channel
from fairlap.frameworks.adapter_parts.grpc.messages import LIVE, STREAM
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.streams.clients.client import (
    E_CERTIFICATE,
    E_SERVER,
    E_STREAM_BUSY,
    E_STREAM_CUT,
    E_STREAM_ENDLESS,
    E_STREAM_EVENT,
    E_STREAM_STATUS,
    E_STREAM_TIMEOUT,
    NOT_UNDERSTOOD,
    RawAnswer,
    StreamFailed,
    failure_of_tls,
    most_events,
    now_ns,
    stream_failed,
)
from fairlap.scenarios.streams.clients.events import MOST_BYTES
from fairlap.scenarios.streams.clients.manner import USUAL, Manner
from fairlap.scenarios.streams.servers import StreamServer, credential_of, shown

_OK = 200
_TOO_LARGE, _NO_CONNECTION = "larger than max", "failed to connect"  # in the words of gRPC
_STATUS_WITHIN_S = 5.0


class GrpcStreamClient:
    def __init__(self, server: StreamServer, certificates: ssl.SSLContext, tokens: int) -> None:
        assert server.address is not None
        self._grpc: Any = grpc_module()
        self._server, self._address = server, server.address
        self._certificates = certificates if server.address.is_encrypted else None
        self._most_events = most_events(tokens)
        credential = credential_of(server)
        self._metadata = (("authorization", f"Bearer {credential}"),) if credential else ()
        self._channel: Any = None
        self._was_connected = False
        self.http_version = "HTTP/2"

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel, self._was_connected = None, False

    def connect(self) -> bool:
        """Ask whether the server is alive; one that does not know this question is."""
        codes = self._grpc.StatusCode
        try:
            within_s = min(self._server.timeout_s, _STATUS_WITHIN_S)
            self._opened().unary_unary(LIVE)(b"", timeout=within_s, metadata=self._metadata)
        except OSError:
            return False
        except self._grpc.RpcError as error:
            if error.code() in (codes.UNAVAILABLE, codes.DEADLINE_EXCEEDED):
                self.close()
                return False
        self._was_connected = True
        return True

    def ask(self, body: bytes, manner: Manner = USUAL) -> RawAnswer:
        answer = RawAnswer(now_ns())
        try:
            call = self._opened().unary_stream(STREAM)(body, timeout=self._server.timeout_s, metadata=self._metadata)
            self._read(call, answer, manner)
            answer.ended_ns = now_ns()
            self._was_connected = True
        except StreamFailed as failed:
            answer.ended_ns, answer.failure = now_ns(), Notice(failed.code, str(failed))
        except self._grpc.RpcError as error:
            answer.ended_ns = now_ns()
            answer.failure = self._failure_of(error, answer)
        except OSError as error:
            answer.ended_ns, answer.failure = now_ns(), self._failure_to_connect(error)
        return answer

    def _opened(self) -> Any:
        if self._channel is None:
            self._channel = open_channel(self._address, self._certificates, self._server.timeout_s, MOST_BYTES)
        return self._channel

    def _read(self, call: Any, answer: RawAnswer, manner: Manner) -> None:
        events, most = answer.events, self._most_events
        for data in call:
            events.append((now_ns(), data))
            if manner.leaves(len(events)):
                call.cancel()
                answer.has_left, answer.status = True, _OK
                return
            if len(events) > most:
                call.cancel()
                raise stream_failed(
                    self._server,
                    f"goes on after {len(events):,} messages, more than it was asked for",
                    E_STREAM_ENDLESS,
                )
        answer.status = NOT_UNDERSTOOD if self._is_refusal(answer) else _OK

    def _is_refusal(self, answer: RawAnswer) -> bool:
        """Whether the answer is an error alone, as of Triton, whose calls succeed then."""
        if len(answer.events) != 1:
            return False
        try:
            return self._server.protocol.piece(answer.events[0][1]).error is not None
        except NOT_THE_DOCUMENT:
            return False

    def _failure_of(self, error: Any, answer: RawAnswer) -> Notice:
        code, codes, within = error.code(), self._grpc.StatusCode, f"{self._server.timeout_s:g} s"
        detail = shown(str(error.details() or ""), self._server)
        if code is codes.DEADLINE_EXCEEDED:
            what = f"did not end its answer within {within}" if answer.events else f"was silent for {within}"
            return self._failure(what, E_STREAM_TIMEOUT)
        if code is codes.RESOURCE_EXHAUSTED and _TOO_LARGE in detail:
            return self._failure(f"sent a message of more than {MOST_BYTES:,} bytes", E_STREAM_EVENT)
        if answer.events:
            events = quantity_text.count(len(answer.events), "message")
            self._forget_lost()
            return self._failure(f"broke off after {events} ({code.name}: {detail})", E_STREAM_CUT)
        if code is codes.UNAVAILABLE and not self._is_there():
            was_connected = self._was_connected
            self.close()
            if was_connected and _NO_CONNECTION not in detail:
                return self._failure(f"broke off without an answer ({detail})", E_STREAM_CUT)
            return self._failure(f"cannot be reached: {detail}", E_SERVER)
        if code is codes.INVALID_ARGUMENT:
            answer.status = NOT_UNDERSTOOD
        is_busy = code in (codes.UNAVAILABLE, codes.RESOURCE_EXHAUSTED)
        reason = f": {detail}" if detail else ""
        return self._failure(f"answered with status {code.name}{reason}", E_STREAM_BUSY if is_busy else E_STREAM_STATUS)

    def _is_there(self) -> bool:
        return self._channel is not None and is_connected(self._grpc, self._channel)

    def _forget_lost(self) -> None:
        """Connect again at once for the next request, in place of as late as gRPC would."""
        if not self._is_there():
            self.close()

    def _failure_to_connect(self, error: OSError) -> Notice:
        self.close()
        if isinstance(error, ssl.SSLError):
            return self._failure(failure_of_tls(error), E_CERTIFICATE)
        if isinstance(error, TimeoutError):
            return self._failure(f"cannot be reached for {self._server.timeout_s:g} s", E_STREAM_TIMEOUT)
        return self._failure(f"cannot be reached: {reason_of(error)}", E_SERVER)

    def _failure(self, what: str, code: str) -> Notice:
        return Notice(code, str(stream_failed(self._server, what, code)))
