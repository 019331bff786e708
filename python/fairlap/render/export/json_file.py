"""One JSON array of rows, each as the published schema has it: estimates and settings stay structures."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlap.results.row import Row


def encode(rows: Sequence[Row]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(list(rows)), indent=1) + b"\n"


def decode(content: bytes) -> list[Row]:
    return msgspec.json.decode(content, type=list[Row])
