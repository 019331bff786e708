"""Read a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.table import Column, items_of_table
from fairlap.errors import InvalidRequest, described
from fairlap.models.array_files.pyarrow_modules import pyarrow_for


def parquet_items(path: Path, labels: str) -> Items:
    arrow, parquet = pyarrow_for(path, CODE)
    try:
        table = parquet.ParquetFile(path).read()
    except (arrow.ArrowException, ValueError) as error:
        why = described(error).splitlines()[0]
        raise InvalidRequest(f"{path} cannot be read as Parquet: {why}", code=CODE) from None
    names = table.column_names
    if not names or not table.num_rows:
        raise InvalidRequest(f"{path} has no items", code=CODE)
    if len(set(names)) < len(names):
        raise InvalidRequest(f"{path} has two columns of the same name", code=CODE)
    return items_of_table(path, {name: _column(path, name, table.column(name), arrow.types) for name in names}, labels)


def _column(path: Path, name: str, found: Any, types: Any) -> Column:
    if found.null_count:
        raise InvalidRequest(
            f"{path}: the column {name!r} lacks {found.null_count:,} of {len(found):,} values; fill them in or leave "
            "the items out",
            code=CODE,
        )
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
