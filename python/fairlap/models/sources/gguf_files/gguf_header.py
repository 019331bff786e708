"""The header of a GGUF file, read without the package gguf: its lengths, and the types of its tensors.

The lengths are read before that package, which counts to whatever an array claims.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAGIC = b"GGUF"
_COUNTS = 8  # where those of tensors and keys are, after the magic and the version
_NUMBER_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # by the type of a value
_STRING, _ARRAY = 8, 9
_MOST_VALUES = 2**22  # of an array; the longest have the tokens of a text, and pairs of them
_MOST_DIMENSIONS = 4
_TYPES = {  # of ggml, by their numbers
    **dict(enumerate(("F32", "F16", "Q4_0", "Q4_1"))),
    **dict(enumerate(("Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K"), 6)),
    **dict(enumerate(("IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS"), 16)),
    **dict(enumerate(("I8", "I16", "I32", "I64", "F64", "IQ1_M", "BF16"), 24)),
    **{34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"},
}


class BadHeader(ValueError):
    """The header is longer than its file, or longer than any model's."""


def require_lengths(path: Path) -> None:
    """Raise BadHeader where a key or its value would end beyond the file, or an array is longer than any model's."""
    with _content_of(path) as content:
        try:
            _after_keys(content)
        except struct.error:
            raise BadHeader("its header ends beyond the file") from None


def tensors_in(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the type of each tensor, by its number where that is not known, and how many values it has."""
    with _content_of(path) as content:
        if content[: len(_MAGIC)] != _MAGIC:
            raise BadHeader("it is not a GGUF file")
        try:
            (tensors,) = struct.unpack_from("<Q", content, _COUNTS)
            place = _after_keys(content)
            for _ in range(tensors):
                place = _after_string(content, place)
                (dimensions,) = struct.unpack_from("<I", content, place)
                if dimensions > _MOST_DIMENSIONS:
                    raise BadHeader(f"a tensor has {dimensions} dimensions")
                *sizes, kind, _offset = struct.unpack_from(f"<{dimensions}QIQ", content, place + 4)
                place += 4 + 8 * dimensions + 4 + 8
                yield _TYPES.get(kind, f"type {kind}"), math.prod(sizes)
        except struct.error:
            raise BadHeader("its header ends beyond the file") from None


@contextmanager
def _content_of(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content


def _after_keys(content: mmap.mmap) -> int:
    (keys,) = struct.unpack_from("<Q", content, _COUNTS + 8)
    place = _COUNTS + 16
    for _ in range(keys):
        place = _after_string(content, place)
        (kind,) = struct.unpack_from("<I", content, place)
        place = _after_value(content, place + 4, kind)
    return place


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
