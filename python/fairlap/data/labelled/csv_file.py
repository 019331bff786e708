"""Read a CSV file with a header line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.table import Column, is_number, items_of_table
from fairlap.errors import InvalidRequest


def csv_items(path: Path, labels: str) -> Items:
    header, rows, lines = _read(path)
    _require_header(path, header, rows, labels)
    if twice := [name for name in header if header.count(name) > 1]:
        raise InvalidRequest(f"{path} has two columns named {twice[0]!r}", code=CODE)
    cells = list(zip(*rows, strict=True))
    return items_of_table(
        path, {name: _column(path, name, cells[place], lines) for place, name in enumerate(header)}, labels
    )


def _read(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Read the header, the rows, and the line on which each row ends."""
    rows, lines = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            for row in reader:
                if not row:  # an empty line
                    continue
                if len(row) != len(header):
                    raise InvalidRequest(
                        f"{path}, line {reader.line_num}: {len(row)} cells, but the header has {len(header)}", code=CODE
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text in UTF-8; save it as CSV in UTF-8", code=CODE) from None
    except csv.Error as error:
        raise InvalidRequest(f"{path}, line {reader.line_num}: {error}", code=CODE) from None
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InvalidRequest(f"{path} does not separate its cells with commas; save it with commas", code=CODE)
    if not rows:
        raise InvalidRequest(f"{path} has no items; a header line and a line for each item are needed", code=CODE)
    return header, rows, lines


def _require_header(path: Path, header: list[str], rows: list[list[str]], labels: str) -> None:
    """Refuse a file without a header, whose first item would be taken for the names of the columns.

    A label may be text in an item too: then it is one of those in the column.
    """
    place = header.index(labels) if labels in header else len(header) - 1
    label, features = header[place], header[:place] + header[place + 1 :]
    if (
        features
        and all(map(is_number, features))
        and (is_number(label) or any(row[place].strip() == label for row in rows))
    ):
        raise InvalidRequest(
            f"{path} has no header line: its first line reads like an item ({','.join(header)[:40]}); add a line with "
            "the names of the columns before it",
            code=CODE,
        )


def _column(path: Path, name: str, cells: tuple[str, ...], lines: list[int]) -> Column:
    stripped = [cell.strip() for cell in cells]
    if "" in stripped:
        line = lines[stripped.index("")]
        raise InvalidRequest(
            f"{path}, line {line}: the column {name!r} is empty; fill in missing values or leave the line out",
            code=CODE,
        )
    texts = np.array(stripped)
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        return texts
    if not np.isfinite(numbers).all():
        place = int(np.argmin(np.isfinite(numbers)))
        raise InvalidRequest(
            f"{path}, line {lines[place]}: the column {name!r} has {stripped[place]}; numbers must be finite", code=CODE
        )
    return numbers
