"""One row on each line, as JSON: for tools that read line by line, and for files that grow."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.results.row import Row


def encode(rows: Sequence[Row]) -> bytes:
    return msgspec.json.Encoder().encode_lines(list(rows))


def decode(content: bytes) -> list[Row]:
    decoder = msgspec.json.Decoder(Row)
    rows = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return rows
