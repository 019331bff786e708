"""Typing errors in a text of characters or tokens, as whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SHARES = (0.02, 0.04, 0.08, 0.12, 0.2)
"""Of the characters, by severity."""

Text = npt.NDArray[Any]
_KINDS = ("swap", "drop", "double", "replace")


def with_typos(text: Text, severity: int, most: int, drawn: np.random.Generator) -> Text:
    """Swap neighbours, or leave out, repeat or replace a character, equally often; the length stays.

    A run of one number at the end fills up a shorter text, and stays as it is. ``most`` is the largest number that a
    character can have.
    """
    length = _length_of(text)
    wrong = min(length, max(1, round(SHARES[severity - 1] * length)))
    found = text[:length].tolist()
    filling = int(text[-1])
    for place in sorted(drawn.choice(length, wrong, replace=False).tolist(), reverse=True):
        kind = _KINDS[drawn.integers(len(_KINDS))]
        other = int(drawn.integers(0, most + 1))
        if kind == "swap" and place + 1 < len(found):
            found[place], found[place + 1] = found[place + 1], found[place]
        elif kind == "drop" and len(found) > 1:
            del found[place]
        elif kind == "double":
            found.insert(place, found[place])
        else:
            found[place] = other
    found += [filling] * len(text)
    return np.array(found[: len(text)], text.dtype)


def _length_of(text: Text) -> int:
    """Without what fills it up; a text that is not filled up ends in a run of one."""
    other = np.flatnonzero(text != text[-1])
    last = int(other[-1]) + 1 if other.size else len(text)
    return last if len(text) - last > 1 else len(text)
