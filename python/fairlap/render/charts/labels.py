"""Names of contestants that are too long for a chart, shortened so that no two of them look the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

WIDE, NARROW = 20, 13
"""The most characters of a label, on wide and on narrow charts."""


def label_expression(names: Sequence[str], most: int = WIDE) -> str:
    """An expression of Vega for the label of a contestant on an axis or in a legend."""
    short = {name: text for name, text in short_names(names, most).items() if text != name}
    return f"{json.dumps(short)}[datum.label] || datum.label" if short else "datum.label"


def short_names(names: Sequence[str], most: int) -> dict[str, str]:
    """Cut in the middle, as near to it as leaves them distinct; else what surrounds the first place where they differ.
    Names that no cut of this size tells apart stay whole."""
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
