"""Read a Parquet file, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.table import Column, items_of_table
from fairlap.errors import InvalidRequest, described
from fairlap.models.array_files.pyarrow_modules import pyarrow_for

_CELLS_AT_ONCE = 2**20


def parquet_items(path: Path, labels: str) -> Items:
    arrow, parquet = pyarrow_for(path, CODE)
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if not names or not file.metadata.num_rows:
                raise InvalidRequest(f"{path} has no items", code=CODE)
            if len(set(names)) < len(names):
                raise InvalidRequest(f"{path} has two columns of the same name", code=CODE)
            return items_of_table(path, names, labels, _batches(path, file, names, arrow))
    except InvalidRequest:
        raise
    except (arrow.ArrowException, ValueError) as error:
        why = described(error).splitlines()[0]
        raise InvalidRequest(f"{path} cannot be read as Parquet: {why}", code=CODE) from None


def _batches(path: Path, file: Any, names: list[str], arrow: Any) -> Iterator[Mapping[str, Column]]:
    for batch in file.iter_batches(max(1, _CELLS_AT_ONCE // len(names))):
        if not batch.num_rows:
            continue
        some = arrow.Table.from_batches([batch])
        if lacking := [name for name in names if some.column(name).null_count]:
            _refuse_nulls(path, file, lacking[0])
        yield {name: column_of(path, name, some.column(name), arrow.types) for name in names}


def _refuse_nulls(path: Path, file: Any, name: str) -> None:
    lacks = sum(batch.column(0).null_count for batch in file.iter_batches(columns=[name]))
    raise InvalidRequest(
        f"{path}: the column {name!r} lacks {lacks:,} of {file.metadata.num_rows:,} values; fill them in or leave the "
        "items out",
        code=CODE,
    )


def column_of(path: Path, name: str, found: Any, types: Any) -> Column:
    if types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    kind = found.type
    if types.is_string(kind) or types.is_large_string(kind):
        return np.array(found.to_pylist())
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InvalidRequest(
            f"{path}: the column {name!r} has the type {found.type}; save it as numbers or text", code=CODE
        )
    numbers = np.asarray(found.to_numpy(), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InvalidRequest(f"{path}: the column {name!r} has numbers that are not finite", code=CODE)
    return numbers
