"""Rows as Parquet, with the flat columns of the CSV file and their types. Needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from fairlap.errors import NotAvailable
from fairlap.results.flat_row import columns, flat, require_header, row_of_cells
from fairlap.results.row import Row


def encode(rows: Sequence[Row]) -> bytes:
    pyarrow, parquet = _pyarrow()
    types = {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "structure": pyarrow.string(),
    }
    fields = [
        pyarrow.field(column.name, types[column.kind], column.nullable, {"description": column.meaning})
        for column in columns()
    ]
    content = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([flat(row) for row in rows], pyarrow.schema(fields)), content)
    return content.getvalue()


def decode(content: bytes) -> list[Row]:
    pyarrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(pyarrow.BufferReader(content))
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from None
    require_header(table.column_names)
    return [row_of_cells(cells) for cells in table.to_pylist()]


def _pyarrow() -> tuple[Any, ModuleType]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise NotAvailable("Parquet needs pyarrow: pip install 'fairlap[parquet]'") from None
    return pyarrow, parquet
