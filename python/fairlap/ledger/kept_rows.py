"""Rows in the store: every column of the row's definition is one of the table, and a row is put together again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairlap.ledger.columns import columns, flat
from fairlap.ledger.schema import Row


def keep_rows(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    names = ", ".join(f'"{column.name}"' for column in columns())
    places = ", ".join("?" * len(columns()))
    db.executemany(f"INSERT INTO rows ({names}) VALUES ({places})", (tuple(flat(row).values()) for row in rows))


def kept_rows(db: sqlite3.Connection, run: str) -> list[Row] | None:
    """None where they were kept by a fairlap whose rows had other columns: they are drawn anew from the laps."""
    found = db.execute("SELECT * FROM rows WHERE run = ? ORDER BY rowid", (run,))
    names = [told[0] for told in found.description]
    try:
        return [row_of(dict(zip(names, cells, strict=True))) for cells in found]
    except (KeyError, ValueError):  # msgspec's own error is a ValueError, and so is an absent value without a reason
        return None


def row_of(cells: Mapping[str, Any]) -> Row:
    """The inverse of ``flat``."""
    fields: dict[str, Any] = {}
    for column in columns():
        cell = cells[column.name]
        if column.kind == "structure":
            fields[column.field] = msgspec.json.decode(cell) if cell is not None else None
        elif column.name == column.field:
            bounds = {end: cells.get(f"{column.name}_{end}") for end in ("low", "high")}
            estimate = f"{column.name}_low" in cells and cell is not None
            fields[column.field] = {"value": cell, **bounds} if estimate else cell
    return msgspec.convert(fields, Row)
