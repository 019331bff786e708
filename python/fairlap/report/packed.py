"""Tables for the page's program, column by column; a text that comes again is written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Packed = dict[str, Any]


def packed(records: Sequence[Mapping[str, Any]]) -> Packed:
    names = list(dict.fromkeys(name for record in records for name in record))
    return {"length": len(records), "columns": {name: _column([r.get(name) for r in records]) for name in names}}


def _column(values: list[Any]) -> list[Any] | Packed:
    """Numbers as they are. Texts as places in a list, unless nearly all of them differ."""
    if not any(isinstance(value, str) for value in values):
        return values
    distinct = list(dict.fromkeys(values))
    places = {value: place for place, value in enumerate(distinct)}
    return {"of": distinct, "at": [places[value] for value in values]}
