"""Tables in folders of Hugging Face's datasets, to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.parquet_file import column_of
from fairlap.data.labelled.table import Column, items_of_table
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.pyarrow_modules import pyarrow_for
from fairlap.models.published_data.hugging_face_folders import HuggingFaceFolder, hugging_face_folder


def is_table(path: Path) -> bool:
    return not any(each.type == "Image" for each in hugging_face_folder(path).features.values())


def hugging_face_items(path: Path) -> Items:
    found = hugging_face_folder(path)
    return replace(items_of_table(path, found.columns, found.label, _batches(found)), held_out=found.held_out)


def _batches(found: HuggingFaceFolder) -> Iterator[Mapping[str, Column]]:
    """Classes have their names."""
    arrow, _ = pyarrow_for(found.path, CODE)
    names = np.array(found.classes()[1]) if found.features[found.label].type == "ClassLabel" else None
    for batch in found.batches(found.columns):
        if lacking := [name for name in found.columns if batch.column(name).null_count]:
            raise InvalidRequest(f"{found.path}: the column {lacking[0]!r} lacks values; fill them in", code=CODE)
        columns = {name: column_of(found.path, name, batch.column(name), arrow.types) for name in found.columns}
        if names is not None:
            columns[found.label] = names[columns[found.label].astype(np.int64)]
        yield columns
