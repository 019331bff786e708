"""Comma-separated values: a header, one line for each row, structures as JSON in their cells.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula and runs it, quoted or not. Such
a text gets an apostrophe in front, which a spreadsheet shows as plain text. A text that begins with an apostrophe gets
one more, so that the first one always goes when the file is read back. Numbers are left alone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from fairlap.render.document import Records
from fairlap.results.flat_row import Column, columns, columns_with_values, flat, require_header, row_of_cells
from fairlap.results.row import Row

_GUARD = "'"
_STARTS_A_FORMULA = tuple("=+-@＝＋－＠")  # the wide ones are taken for the narrow ones in some languages
_LARGEST_CELL = 2**31 - 1


def encode(rows: Sequence[Row], *, all_columns: bool = False) -> bytes:
    shown = columns() if all_columns else columns_with_values(rows)
    lines = ([_guarded(cells[column.name], column) for column in shown] for cells in map(flat, rows))
    return _written([[column.name for column in shown], *lines])


def encode_records(records: Records) -> bytes:
    """Write those of a document. An absent figure is empty, never 0."""
    heads = [
        head
        for name in records.names
        for head in ((name, f"{name}_low", f"{name}_high") if name in records.estimates else (name,))
    ]
    lines = (
        [
            cell
            for name, value in zip(records.names, row, strict=True)
            for cell in _cells(value, name in records.estimates)
        ]
        for row in records.rows
    )
    return _written([heads, *lines])


def _cells(value: Any, is_estimate: bool) -> Sequence[Any]:
    if is_estimate:
        return (None, None, None) if value is None else (value.value, value.low, value.high)
    if isinstance(value, dict | list):
        return (msgspec.json.encode(value).decode(),)
    return (guarded(value) if isinstance(value, str) else value,)


def _written(lines: Iterable[Sequence[Any]]) -> bytes:
    # Every text is quoted: then nothing in it ends a cell, whatever the reader takes for a separator.
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def decode(content: bytes) -> list[Row]:
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    by_name = {column.name: column for column in columns()}
    try:
        header = next(reader, [])
        require_header(header)
        rows = []
        for cells in reader:
            if len(cells) != len(header):
                raise ValueError(f"line {reader.line_num}: {len(cells)} cells under {len(header)} columns")
            try:
                rows.append(
                    row_of_cells({name: _read(cell, by_name[name]) for name, cell in zip(header, cells, strict=True)})
                )
            except ValueError as error:
                raise ValueError(f"line {reader.line_num}: {error}") from None
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None
    return rows


def _guarded(value: Any, column: Column) -> Any:
    return guarded(value) if column.kind == "text" and isinstance(value, str) else value


def guarded(text: str) -> str:
    """As it has to be in a cell, so that no spreadsheet takes it for a formula."""
    return _GUARD + text if _needs_a_guard(text) else text


def _needs_a_guard(text: str) -> bool:
    # Some readers drop spaces, tabs and line ends in front before they look.
    return text.startswith(_GUARD) or text.lstrip().startswith(_STARTS_A_FORMULA)


def _read(cell: str, column: Column) -> Any:
    if column.kind == "text":
        return cell.removeprefix(_GUARD)
    if column.kind == "structure":
        return cell
    if not cell:
        return None
    return int(cell) if column.kind == "whole" else float(cell)
