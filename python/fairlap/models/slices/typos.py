"""Typing errors: in a text, or in one of characters or tokens as whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_lowercase
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

SHARES = (0.02, 0.04, 0.08, 0.12, 0.2)
"""Of the characters, by severity."""

Numbers = npt.NDArray[Any]
_Character = TypeVar("_Character")
_KINDS = ("swap", "drop", "double", "replace")


def mistyped(text: str, severity: int, drawn: np.random.Generator) -> str:
    """Mistype at least one character, unless there is none."""
    return "".join(_edited(list(text), severity, drawn, lambda: ascii_lowercase[drawn.integers(26)])) if text else text


def mistyped_numbers(text: Numbers, severity: int, most: int, drawn: np.random.Generator) -> Numbers:
    """Keep the length: a run of one number at the end fills up a shorter text, and stays as it is.

    ``most`` is the largest number that a character can have.
    """
    length = _length_of(text)
    found = _edited(text[:length].tolist(), severity, drawn, lambda: int(drawn.integers(0, most + 1)))
    found += [int(text[-1])] * len(text)
    return np.array(found[: len(text)], text.dtype)


def _edited(
    text: list[_Character], severity: int, drawn: np.random.Generator, other: Callable[[], _Character]
) -> list[_Character]:
    """Swap neighbours, or leave out, repeat or replace a character, equally often."""
    wrong = min(len(text), max(1, round(SHARES[severity - 1] * len(text))))
    for place in sorted(drawn.choice(len(text), wrong, replace=False).tolist(), reverse=True):
        kind = _KINDS[drawn.integers(len(_KINDS))]
        if kind == "swap" and place + 1 < len(text):
            text[place], text[place + 1] = text[place + 1], text[place]
        elif kind == "drop" and len(text) > 1:
            del text[place]
        elif kind == "double":
            text.insert(place, text[place])
        else:
            text[place] = other()
    return text


def _length_of(text: Numbers) -> int:
    """Without what fills it up; a text that is not filled up ends in a run of one."""
    other = np.flatnonzero(text != text[-1])
    last = int(other[-1]) + 1 if other.size else len(text)
    return last if len(text) - last > 1 else len(text)
