"""Names of contestants in charts: those that Vega and a page cannot hold as they are, and those that are too long."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fairlap.printable import one_line

WIDE, NARROW = 20, 13
"""The most characters of a label, on wide and on narrow charts."""

_OF_EVERY_OBJECT = frozenset({
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
    "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__",
})  # fmt: skip
"""Names under which JavaScript finds something in every object. Vega looks names up in objects, and draws nothing."""


def chart_text(text: str) -> str:
    """Put a text on one line, of characters that can be shown.

    A form of a page changes line breaks, an expression of Vega ends at some separators, and SVG knows no control
    characters.
    """
    text = one_line(text)
    return f"{text}\N{NO-BREAK SPACE}" if text in _OF_EVERY_OBJECT else text


def chart_texts(value: Any) -> Any:
    """Apply ``chart_text`` to all texts and keys of a specification or its data."""
    if isinstance(value, str):
        return chart_text(value)
    if isinstance(value, dict):
        return {chart_texts(key): chart_texts(each) for key, each in value.items()}
    return [chart_texts(each) for each in value] if isinstance(value, list | tuple) else value


def label_expression(names: Sequence[str], most: int = WIDE) -> str:
    """Make an expression of Vega for the label of a contestant on an axis or in a legend."""
    short = {name: text for name, text in short_names(names, most).items() if text != name}
    return f"{json.dumps(short)}[datum.label] || datum.label" if short else "datum.label"


def short_names(names: Sequence[str], most: int) -> dict[str, str]:
    """Cut names in the middle, as near to it as leaves them distinct.

    Else what surrounds the first place where they differ is kept. Names that no cut of this size tells apart stay
    whole.
    """
    for head, tail in _parts(max(map(len, names), default=0), most):
        found = {name: name if len(name) <= most else _cut(name, head, tail, most) for name in names}
        if len(set(found.values())) == len(found):
            return found
    return {name: name for name in names}


def _parts(longest: int, most: int) -> Iterator[tuple[int, int]]:
    """How many characters of the beginning and of the end are left; for a window where it begins, and 0."""
    kept = most - 1
    for head in sorted(range(1, kept), key=lambda each: abs(2 * each - kept)):
        yield head, kept - head
    for start in range(1, longest):
        yield start, 0


def _cut(name: str, head: int, tail: int, most: int) -> str:
    if tail:
        return f"{name[:head]}…{name[-tail:]}"
    inside = name[head : head + most - 2]
    return f"…{inside}" + ("…" if head + most - 2 < len(name) else "")
