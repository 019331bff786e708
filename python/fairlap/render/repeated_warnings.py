"""Warnings that differ in their figures only are one kind: the kernel took the core away, 7 times here, 2,837 there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_FIGURE = re.compile(r"\bonce\b|\d[\d.,]*(?: times)?")


@dataclass
class KindOfWarning:
    """``first`` is how it was first said, ``said_by`` how often by whom."""

    first: str
    said_by: Counter[str] = field(default_factory=Counter)


def kinds_of_warnings(said: Iterable[tuple[str, Iterable[str]]]) -> list[KindOfWarning]:
    """Of pairs of who said something and all that was said at once, in which a kind counts once. In order of coming."""
    found: dict[str, KindOfWarning] = {}
    for who, texts in said:
        alike: dict[str, str] = {}
        for text in texts:
            alike.setdefault(_FIGURE.sub("#", text), text)
        for key, text in alike.items():
            found.setdefault(key, KindOfWarning(text)).said_by[who] += 1
    return list(found.values())
