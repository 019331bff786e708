"""Rows as Parquet, with the flat columns of the CSV file and their types. Needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Sequence

from fairlap.results.flat_row import require_header, row_of_cells
from fairlap.results.row import Row
from fairlap.results.row_sequence import arrow_table, pyarrow_for

_NAME = "Parquet"


def encode(rows: Sequence[Row]) -> bytes:
    table = arrow_table(rows, _NAME)
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(table, content)
    return content.getvalue()


def decode(content: bytes) -> list[Row]:
    pyarrow = pyarrow_for(_NAME)
    from pyarrow import parquet

    try:
        table = parquet.read_table(pyarrow.BufferReader(content))
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from None
    require_header(table.column_names)
    return [row_of_cells(cells) for cells in table.to_pylist()]
