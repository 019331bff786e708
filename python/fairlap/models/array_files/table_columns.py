"""Columns of a table, CSV, TSV or Parquet: one as texts, or all that are features as numbers."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.models.array_files.pyarrow_modules import pyarrow_for

_MOST_LISTED = 10


def column_in(path: Path, column: str, code: str) -> npt.NDArray[np.str_]:
    """Read a text for each row. Raises ValueError, in one line, or OSError; ``code`` is that of missing pyarrow."""
    if _is_parquet(path):
        with _parquet(path, code) as file:
            _place(file.schema_arrow.names, column)
            values = file.read(columns=[column]).column(column).to_pylist()
        found = ["" if value is None else str(value) for value in values]
    else:
        rows = _rows(path)
        place = _place(next(rows), column)
        found = [row[place] for row in rows]
    if not found:
        raise ValueError("it has no rows")
    return np.array(found)


def features_in(path: Path, without: Collection[str], code: str) -> npt.NDArray[np.float32]:
    """Read all columns but those as numbers, a row for each item. Raises as ``column_in`` does."""
    if _is_parquet(path):
        with _parquet(path, code) as file:
            _require(file.schema_arrow.names, without)
            names = [name for name in file.schema_arrow.names if name not in without]
            table = file.read(columns=names)
            columns = [np.asarray(table.column(name).to_pylist(), object) for name in names]
    else:
        rows = _rows(path)
        header = next(rows)
        _require(header, without)
        names = [name for name in header if name not in without]
        columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.array([]) for _ in header]
        columns = [column for name, column in zip(header, columns, strict=True) if name not in without]
    if not columns or not len(columns[0]):
        raise ValueError("it has no rows" if columns else "it has no columns besides labels and groups")
    return np.stack([_numbers(name, column) for name, column in zip(names, columns, strict=True)], axis=1)


def _numbers(name: str, column: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    try:
        found = column.astype(np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"the column {name!r} has cells that are not numbers") from None
    if not (np.abs(found) <= np.finfo(np.float32).max).all():
        raise ValueError(f"the column {name!r} has numbers that are missing, not finite or too large for float32")
    return found.astype(np.float32)


def _rows(path: Path) -> Iterator[list[str]]:
    """Read the header, and then every row, with stripped cells."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=separator_of(path), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            yield header
            for row in filter(None, reader):
                if len(row) != len(header):
                    raise ValueError(f"line {reader.line_num} has {len(row)} cells, and the header {len(header)}")
                yield [cell.strip() for cell in row]
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from None


def separator_of(path: Path) -> str:
    """Return the one between the cells of a CSV or TSV file."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


@contextmanager
def _parquet(path: Path, code: str) -> Iterator[Any]:
    arrow, parquet = pyarrow_for(path, code)
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except arrow.ArrowException as error:
        raise ValueError(str(error).splitlines()[0]) from None


def _require(names: list[str], columns: Collection[str]) -> None:
    for column in filter(None, columns):
        _place(names, column)


def _place(names: list[str], column: str) -> int:
    if names.count(column) != 1:
        listed = ", ".join(names[:_MOST_LISTED]) + ("" if len(names) <= _MOST_LISTED else ", ...")
        times = "no column" if column not in names else "two columns"
        raise ValueError(f"it has {times} {column!r}; it has {listed or 'none'}")
    return names.index(column)
