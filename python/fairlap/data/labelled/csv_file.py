"""Read a CSV or TSV file with a header line, twice: once for the types of its columns, and then some rows at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.table import Column, is_number, items_of_table
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.table_columns import separator_of

_CELLS_AT_ONCE = 2**17

Row = list[str]
Rows = list[tuple[int, Row]]  # with the line on which each ends


def csv_items(path: Path, labels: str) -> Items:
    try:
        header, found = _looked_through(path, labels)
        _require_readable(path, header, found, labels)
        return items_of_table(path, header, labels, _columns(path, header, found.text))
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text in UTF-8; save it as CSV in UTF-8", code=CODE) from None


@dataclass
class _Found:
    """What all rows show; the columns by their places."""

    items: int = 0
    label_in_header: bool = False  # it is one of the labels too
    text: set[int] = field(default_factory=set)
    empty: dict[int, int] = field(default_factory=dict)  # the first line where a cell is
    not_finite: dict[int, tuple[int, str]] = field(default_factory=dict)  # the first one


def _looked_through(path: Path, labels: str) -> tuple[Row, _Found]:
    parts = _parts(path)
    ((_, header),) = next(parts)
    found, label = _Found(), _label_place(header, labels)
    for rows in parts:
        found.items += len(rows)
        found.label_in_header |= any(row[label].strip() == header[label] for _, row in rows)
        for place in range(len(header)):
            _look_at(place, [(line, row[place].strip()) for line, row in rows], found)
    return header, found


def _look_at(place: int, cells: list[tuple[int, str]], found: _Found) -> None:
    texts = [text for _, text in cells]
    if "" in texts and place not in found.empty:
        found.empty[place] = cells[texts.index("")][0]
    if place in found.text:
        return
    try:
        numbers = np.array(texts).astype(np.float64)
    except ValueError:
        found.text.add(place)
        return
    if place not in found.not_finite and not np.isfinite(numbers).all():
        found.not_finite[place] = cells[int(np.argmin(np.isfinite(numbers)))]


def _columns(path: Path, header: Row, text: set[int]) -> Iterator[Mapping[str, Column]]:
    parts = _parts(path)
    next(parts)
    for rows in parts:
        cells = zip(*(row for _, row in rows), strict=True)
        texts = [np.array([cell.strip() for cell in column]) for column in cells]
        yield {
            name: texts[place] if place in text else texts[place].astype(np.float64)
            for place, name in enumerate(header)
        }


def _parts(path: Path) -> Iterator[Rows]:
    """Read the header alone, with stripped names; then the rows, some at a time."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=separator_of(path), strict=True)
        rows: Rows = []
        try:
            header = [name.strip() for name in next(reader, [])]
            yield [(reader.line_num, header)]
            for row in reader:
                if not row:  # an empty line
                    continue
                if len(row) != len(header):
                    raise InvalidRequest(
                        f"{path}, line {reader.line_num}: {len(row)} cells, but the header has {len(header)}", code=CODE
                    )
                rows.append((reader.line_num, row))
                if len(rows) * len(header) >= _CELLS_AT_ONCE:
                    yield rows
                    rows = []
        except csv.Error as error:
            raise InvalidRequest(f"{path}, line {reader.line_num}: {error}", code=CODE) from None
        if rows:
            yield rows


def _label_place(header: Row, labels: str) -> int:
    return header.index(labels) if labels in header else len(header) - 1


def _require_readable(path: Path, header: Row, found: _Found, labels: str) -> None:
    if len(header) == 1 and any(each in header[0] for each in ";\t,"):
        own = "tabs" if separator_of(path) == "\t" else "commas"
        raise InvalidRequest(f"{path} does not separate its cells with {own}; save it with {own}", code=CODE)
    if not found.items:
        raise InvalidRequest(f"{path} has no items; a header line and a line for each item are needed", code=CODE)
    _require_header(path, header, labels, in_items=found.label_in_header)
    if twice := [name for name in header if header.count(name) > 1]:
        raise InvalidRequest(f"{path} has two columns named {twice[0]!r}", code=CODE)
    for place, name in enumerate(header):
        if place in found.empty:
            raise InvalidRequest(
                f"{path}, line {found.empty[place]}: the column {name!r} is empty; fill in missing values or leave the "
                "line out",
                code=CODE,
            )
        if place in found.not_finite and place not in found.text:
            line, cell = found.not_finite[place]
            raise InvalidRequest(
                f"{path}, line {line}: the column {name!r} has {cell}; numbers must be finite", code=CODE
            )


def _require_header(path: Path, header: Row, labels: str, *, in_items: bool) -> None:
    """Refuse a file without a header, whose first item would be taken for the names of the columns.

    A label may be text in an item too: then it is one of those in the column.
    """
    place = _label_place(header, labels)
    label, features = header[place], header[:place] + header[place + 1 :]
    if features and all(map(is_number, features)) and (is_number(label) or in_items):
        raise InvalidRequest(
            f"{path} has no header line: its first line reads like an item ({','.join(header)[:40]}); add a line with "
            "the names of the columns before it",
            code=CODE,
        )
