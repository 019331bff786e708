"""Read Parquet with a column of encoded images and one of whole numbers, as Hugging Face's datasets are stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.models.array_files.pyarrow_modules import pyarrow_for
from fairlap.request.fields.data.stored_data import CODE

_BYTES = "bytes"  # the field of a struct column, which also has the path that an image had


def found_columns(path: Path) -> tuple[tuple[str, str], int]:
    """Find the columns of images and of labels, and the number of rows."""
    arrow, parquet = pyarrow_for(path, CODE)
    try:
        file = parquet.ParquetFile(path)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise InvalidRequest(f"{path} cannot be read as Parquet: {error}", code=CODE) from None
    schema, types = file.schema_arrow, arrow.types
    images = [field.name for field in schema if _is_binary(field.type, types) or _has_bytes(field.type, types)]
    labels = [field.name for field in schema if types.is_integer(field.type)]
    if len(images) != 1 or len(labels) != 1:
        raise InvalidRequest(
            f"{path} must have one column of encoded images and one of whole numbers, the labels; its columns of bytes "
            f"are {', '.join(images) or 'none'}, and of whole numbers {', '.join(labels) or 'none'}",
            code=CODE,
        )
    return (images[0], labels[0]), file.metadata.num_rows


def parquet_samples(
    path: str, columns: tuple[str, str], batch: int, part: int = 0, parts: int = 1
) -> Iterator[tuple[bytes, int]]:
    """Yield the encoded image and the label of each row, or of the rows of each ``parts``-th row group."""
    _, parquet = pyarrow_for(Path(path), CODE)
    file = parquet.ParquetFile(path)
    groups = list(range(file.metadata.num_row_groups))[part::parts]
    if not groups:
        return
    for rows in file.iter_batches(batch, row_groups=groups, columns=list(columns)):
        images, labels = (rows.column(rows.schema.get_field_index(name)) for name in columns)
        images = images.field(_BYTES) if images.type.num_fields else images
        for image, label in zip(images, labels.to_pylist(), strict=True):
            yield image.as_py(), label


def _is_binary(kind: Any, types: Any) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _has_bytes(kind: Any, types: Any) -> bool:
    return bool(types.is_struct(kind)) and any(
        kind.field(place).name == _BYTES and _is_binary(kind.field(place).type, types)
        for place in range(kind.num_fields)
    )
