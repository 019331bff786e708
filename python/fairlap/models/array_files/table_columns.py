"""One column of a table, CSV, TSV or Parquet, as texts."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairlap.models.array_files.pyarrow_modules import pyarrow_for

_MOST_LISTED = 10


def column_in(path: Path, column: str, code: str) -> npt.NDArray[np.str_]:
    """Read a text for each row. Raises ValueError, in one line, or OSError; ``code`` is that of missing pyarrow."""
    kind = path.suffix.lower()
    found = _of_parquet(path, column, code) if kind == ".parquet" else _of_text(path, column, "\t" * (kind == ".tsv"))
    if not found:
        raise ValueError("it has no rows")
    return np.array(found)


def _of_text(path: Path, column: str, separator: str) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=separator or ",", strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            place = _place(header, column)
            found = []
            for row in filter(None, reader):
                if len(row) != len(header):
                    raise ValueError(f"line {reader.line_num} has {len(row)} cells, and the header {len(header)}")
                found.append(row[place].strip())
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from None
    return found


def _of_parquet(path: Path, column: str, code: str) -> list[str]:
    arrow, parquet = pyarrow_for(path, code)
    try:
        with parquet.ParquetFile(path) as file:
            _place(file.schema_arrow.names, column)
            values = file.read(columns=[column]).column(column).to_pylist()
    except arrow.ArrowException as error:
        raise ValueError(str(error).splitlines()[0]) from None
    return ["" if value is None else str(value) for value in values]


def _place(names: list[str], column: str) -> int:
    if names.count(column) != 1:
        listed = ", ".join(names[:_MOST_LISTED]) + ("" if len(names) <= _MOST_LISTED else ", ...")
        times = "no column" if column not in names else "two columns"
        raise ValueError(f"it has {times} {column!r}; it has {listed or 'none'}")
    return names.index(column)
