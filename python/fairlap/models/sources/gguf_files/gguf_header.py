"""Lengths in the header of a GGUF file, before the package gguf reads it, which counts to whatever an array claims."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_COUNTS = 8  # where those of tensors and keys are, after the magic and the version
_NUMBER_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # by the type of a value
_STRING, _ARRAY = 8, 9
_MOST_VALUES = 2**22  # of an array; the longest have the tokens of a text, and pairs of them


class BadHeader(ValueError):
    """The header is longer than its file, or longer than any model's."""


def require_lengths(path: Path) -> None:
    """Raise BadHeader where a key or its value would end beyond the file, or an array is longer than any model's."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            _, keys = struct.unpack_from("<QQ", content, _COUNTS)
            place = _COUNTS + 16
            for _ in range(keys):
                place = _after_string(content, place)
                (kind,) = struct.unpack_from("<I", content, place)
                place = _after_value(content, place + 4, kind)
        except struct.error:
            raise BadHeader("its header ends beyond the file") from None


def _after_string(content: mmap.mmap, place: int) -> int:
    (length,) = struct.unpack_from("<Q", content, place)
    return _within(content, place + 8 + int(length))


def _after_value(content: mmap.mmap, place: int, kind: int) -> int:
    if kind == _STRING:
        return _after_string(content, place)
    if kind != _ARRAY:
        return _within(content, place + _bytes_of(kind))
    kind, length = struct.unpack_from("<IQ", content, place)
    place += 12
    if length > _MOST_VALUES:
        raise BadHeader(f"an array in its header has {length:,} values")
    if kind != _STRING:
        return _within(content, place + length * _bytes_of(kind))
    for _ in range(length):
        place = _after_string(content, place)
    return place


def _bytes_of(kind: int) -> int:
    if kind not in _NUMBER_BYTES:
        raise BadHeader(f"its header has a value of the type {kind}")
    return _NUMBER_BYTES[kind]


def _within(content: mmap.mmap, place: int) -> int:
    if place > len(content):
        raise BadHeader("its header ends beyond the file")
    return place
