"""The rows of a run as a sequence that other libraries read as a table, by Arrow's interface for Python."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from fairlap import quantity_text
from fairlap.errors import NotAvailable
from fairlap.results.flat_row import Kind, columns, flat
from fairlap.results.row import Row

if TYPE_CHECKING:
    _Base = Sequence[Row]
else:
    # pyarrow and polars take a list or a registered sequence for columns or values, before they ask for its stream.
    _Base = object

_PANDAS_TYPES: dict[Kind, str] = {"text": "string", "structure": "string", "whole": "Int64", "number": "float64"}


class Rows(_Base):
    """A row for each contestant, work and kind of conditions. It is read as a sequence, or as a table.

    ``polars.DataFrame(rows)``, ``pyarrow.table(rows)`` and DuckDB read it by ``__arrow_c_stream__``, which needs
    pyarrow; ``rows.to_pandas()`` needs pandas alone. The table has every column of the CSV file, an absent value is
    null, and structures are JSON in a text.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @overload
    def __getitem__(self, place: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Rows: ...
    def __getitem__(self, place: SupportsIndex | slice) -> Row | Rows:
        return Rows(self._rows[place]) if isinstance(place, slice) else self._rows[place]

    def __contains__(self, value: object) -> bool:
        return value in self._rows

    def __reversed__(self) -> Iterator[Row]:
        return reversed(self._rows)

    def index(self, value: Any, start: int = 0, stop: int = sys.maxsize) -> int:
        return self._rows.index(value, start, stop)

    def count(self, value: Any) -> int:
        return self._rows.count(value)

    def __add__(self, others: Iterable[Row]) -> Rows:
        """Put the rows of several runs into one table."""
        return Rows((*self, *others))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Rows | list | tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        contestants = ", ".join(dict.fromkeys(row.contestant for row in self._rows))
        return f"<{quantity_text.count(len(self), 'row')}: {contestants}>" if self._rows else "<0 rows>"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export them through Arrow's PyCapsule interface."""
        stream: object = arrow_table(self, "reading rows as Arrow").__arrow_c_stream__(requested_schema)
        return stream

    def to_pandas(self) -> Any:
        """Make a ``pandas.DataFrame``. Absent numbers are NaN, other absent values ``pandas.NA``."""
        try:
            import pandas as pd
        except ImportError:
            raise NotAvailable("rows as a data frame need pandas: pip install pandas") from None
        return pd.DataFrame(
            {
                column.name: pd.Series([column.read(row) for row in self], dtype=_PANDAS_TYPES[column.kind])
                for column in columns()
            }
        )


def arrow_table(rows: Iterable[Row], needed_by: str) -> Any:
    """Make a ``pyarrow.Table``; ``needed_by`` names what needs it, for a message where pyarrow is not installed."""
    pyarrow = pyarrow_for(needed_by)
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
    return pyarrow.Table.from_pylist([flat(row) for row in rows], pyarrow.schema(fields))


def pyarrow_for(needed_by: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise NotAvailable(f"{needed_by} needs pyarrow: pip install 'fairlap[parquet]'") from None
    return pyarrow
