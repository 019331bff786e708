"""Rows as JSON, as the published schema has them: one array, or one row on each line (JSON Lines)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.results.row import Row


def encode(rows: Sequence[Row]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(list(rows)), indent=1) + b"\n"


def decode(content: bytes) -> list[Row]:
    return msgspec.json.decode(content, type=list[Row])


def encode_lines(rows: Sequence[Row]) -> bytes:
    return msgspec.json.Encoder().encode_lines(list(rows))


def decode_lines(content: bytes) -> list[Row]:
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
