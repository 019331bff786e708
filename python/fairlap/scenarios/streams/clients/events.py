"""Server-sent events and lines of JSON, read while their bytes arrive: however these are cut, the pieces are the same.

Events are as the HTML standard defines them (section 9.2): they end with a blank line, lines end with LF, CRLF or CR,
those that begin with a colon are comments, and the lines of data of an event are joined.
"""

from __future__ import annotations

import re

MOST_BYTES = 2**20
"""Of one event."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of a stream


class EventTooLarge(Exception):
    """It has more bytes than ``MOST_BYTES``, whether or not it has ended."""


class EventReader:
    def __init__(self) -> None:
        self._line = bytearray()  # what came of a line that has not ended
        self._data: list[bytes] = []  # of an event that has not ended
        self._bytes = 0  # of these
        self._is_first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of each event that ends within the chunk."""
        if b"\n" not in chunk and b"\r" not in chunk and not self._line.endswith(b"\r"):
            self._line += chunk
            self._require_small()
            return []
        text = bytes(self._line) + chunk
        kept = text[-1:] if text.endswith(b"\r") else b""  # a line feed may follow, which belongs to it
        *lines, rest = _LINE_END.split(text[: len(text) - len(kept)])
        self._line = bytearray(rest + kept)
        found = [data for line in lines if (data := self._event_ended_by(line)) is not None]
        self._require_small()
        return found

    def _event_ended_by(self, line: bytes) -> bytes | None:
        if self._is_first:
            line, self._is_first = line.removeprefix(_MARK), False
        if not line:
            data, self._data, self._bytes = self._data, [], 0
            return b"\n".join(data) if data else None
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._bytes += len(value)
            self._require_small()
        return None

    def _require_small(self) -> None:
        if self._bytes + len(self._line) > MOST_BYTES:
            raise EventTooLarge


class LineReader:
    """Lines that end with LF, as of JSON. Blank ones are left out."""

    def __init__(self) -> None:
        self._line = bytearray()  # what came of a line that has not ended

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return each line that ends within the chunk."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._line) + lines[0]
            self._line = bytearray(rest)
        else:
            self._line += rest
        if max(map(len, (*lines, self._line))) > MOST_BYTES:
            raise EventTooLarge
        return [line for line in lines if line.strip()]
