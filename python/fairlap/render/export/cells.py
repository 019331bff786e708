"""From flat cells back to a row: the way back of ``columns.flat``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairlap.results.columns import columns
from fairlap.results.row import Row


def require_header(names: Iterable[str]) -> None:
    """The columns of this version of the row, in any order."""
    found, wanted = list(names), {column.name for column in columns()}
    missing, unknown = sorted(wanted - set(found)), sorted(set(found) - wanted)
    if missing:
        raise ValueError(f"the columns {', '.join(missing)} are missing")
    if unknown:
        raise ValueError(f"there are unknown columns: {', '.join(unknown)}")
    if len(found) > len(wanted):
        raise ValueError("a column stands there twice")


def row_of_cells(cells: Mapping[str, Any]) -> Row:
    """Numbers as numbers, structures as JSON text. A text that is absent cannot be told from an empty one by its cell
    in every format, so ``absent`` decides."""
    absent: dict[str, str] = msgspec.json.decode(cells["absent"], type=dict[str, str])
    found: dict[str, Any] = {}
    for column in columns():
        value = cells[column.name]
        if column.name != column.field:  # a bound: its estimate stands before it
            if isinstance(found[column.field], dict):
                found[column.field][column.name.removeprefix(f"{column.field}_")] = value
        elif column.field in absent:
            found[column.field] = None
        elif column.kind == "structure":
            found[column.field] = msgspec.json.decode(value)
        else:
            found[column.field] = {"value": value} if column.is_estimate else value
    return msgspec.convert(found, type=Row)
