"""JSON that gives every number back: it has no word for those that are not finite, so they are written as texts.

An error of a gradient has no cosine, a wrong answer may hold infinities. As null they could not be read again.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def exact_json(document: object) -> bytes:
    return msgspec.json.encode(_spelt(msgspec.to_builtins(document)))


def read_exact_json(text: bytes | str, kind: type[T]) -> T:
    """Not strict, so that "nan" is read as the number it stands for."""
    return msgspec.json.decode(text, type=kind, strict=False)


def _spelt(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _spelt(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt(each) for each in value]
    return value
