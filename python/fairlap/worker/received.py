"""Bytes as they come from a worker, as messages: lines of JSON, and the raw bytes that follow some of them."""

from __future__ import annotations

from collections.abc import Callable

from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.scenarios.asking import Reply
from fairlap.secrets import json_without_secrets, without_secrets
from fairlap.worker.protocol import LONGEST_LINE_BYTES, reply_in

_QUOTED = 80
_LOOKED_AT = 4096


class NotAMessage(Exception):
    """The bytes that came are not a message of the protocol."""


class Received:
    """What has come and was not taken yet."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._expected: tuple[Reply, int] | None = None
        self._searched = 0

    def add(self, chunk: bytes) -> None:
        self._bytes += chunk

    def line(self) -> bytes | None:
        """Return the next whole line; None while it has not come."""
        end = self._bytes.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._bytes)
            if self._searched > LONGEST_LINE_BYTES:
                raise NotAMessage(f"a line of over {LONGEST_LINE_BYTES >> 20} MiB: {_quoted(self._bytes)}")
            return None
        line = bytes(self._bytes[:end])
        del self._bytes[: end + 1]
        self._searched = 0
        return line

    def message(self, require: Callable[[Reply], None] = lambda _: None) -> tuple[Reply, bytes] | None:
        """Return the next message with its raw bytes; None while it has not come as a whole.

        ``require`` raises NotAMessage for one that was not asked for, before its raw bytes are kept.
        """
        if self._expected is None:
            line = self.line()
            if line is None:
                return None
            reply = _parsed(line)
            require(reply)
            self._expected = reply, reply.raw_bytes
        reply, raw = self._expected
        if len(self._bytes) < raw:
            return None
        self._expected = None
        payload = bytes(self._bytes[:raw])
        del self._bytes[:raw]
        return reply, payload


def _parsed(line: bytes) -> Reply:
    try:
        return reply_in(json_without_secrets(line))
    except NOT_THE_DOCUMENT as error:
        raise NotAMessage(f"{_quoted(line)} ({error})") from None


def _quoted(raw: bytes | bytearray) -> str:
    short = without_secrets(bytes(raw[:_LOOKED_AT]).decode("utf-8", "backslashreplace"))[:_QUOTED]
    return repr(short) + ("..." if len(raw) > _QUOTED else "")
