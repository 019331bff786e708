"""The columns of a table as features and labels.

Text labels are classes. Whole numbers with few different values are classes too, and other numbers are values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.data.labelled.items import CODE, Items, fits_float32, items_with_classes, items_with_values
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.stored_rows import StoredRows

Column = npt.NDArray[Any]  # float64 or text

MOST_NUMBERED_CLASSES = 20
_MOST_LISTED = 10


def items_of_table(path: Path, names: Sequence[str], labels: str, batches: Iterable[Mapping[str, Column]]) -> Items:
    """``labels`` is a column, the last one if it is empty. Numbers that are missing are NaN and refused.

    The rows come in ``batches``, in each of which a column has the same type.
    """
    column = labels or names[-1]
    if column not in names:
        raise InvalidRequest(f"{path} has no column {labels!r}; it has {_listed(names)}", code=CODE)
    if len(names) == 1:
        raise InvalidRequest(f"{path} has one column only; features and a label are needed", code=CODE)
    rows, found, known = StoredRows(), list[Column](), dict[str, int]()
    for columns in batches:
        features = {name: each for name, each in columns.items() if name != column}
        some = _features(path, features, column, sum(map(len, found)))
        if some is not None:
            rows.add(some)
        found.append(_numbered(columns[column], known))
    if rows.is_empty:
        raise InvalidRequest(f"{path} has features that are not numbers", code=CODE)
    inputs, numbers = {"features": rows.array()}, np.concatenate(found)
    where = f"{path}, column {column}"
    if known:
        rank = {text: number for number, text in enumerate(sorted(known))}
        return items_with_classes(inputs, np.array([rank[text] for text in known])[numbers], where, [*rank])
    if np.isfinite(numbers).all() and (numbers == np.round(numbers)).all():
        different = np.unique(numbers)
        if len(different) <= MOST_NUMBERED_CLASSES:
            names_of_classes = [f"{number:.0f}" for number in different]
            return items_with_classes(inputs, np.searchsorted(different, numbers), where, names_of_classes)
    return items_with_values(inputs, numbers, where)


def _numbered(column: Column, known: dict[str, int]) -> Column:
    """Replace texts by numbers, in the order in which they come; leave numbers."""
    if column.dtype.kind == "f":
        return column
    return np.array([known.setdefault(text, len(known)) for text in column.tolist()], np.int32)


def _features(path: Path, columns: Mapping[str, Column], label: str, before: int) -> Column | None:
    """Stack the columns; None where one has text, although not in these rows. ``before`` counts the items before."""
    for name, each in columns.items():
        if each.dtype.kind != "f":
            place = next((number for number, cell in enumerate(each) if not is_number(cell)), None)
            if place is None:
                return None
            raise InvalidRequest(
                f"{path}: the column {name!r} has text, such as {str(each[place])[:40]!r} in item "
                f"{before + place + 1}; features are numbers. The labels are in {label!r}; FILE:COLUMN names another "
                "column",
                code=CODE,
            )
        if not fits_float32(each):
            place = int(np.argmax(np.abs(each)))
            raise InvalidRequest(
                f"{path}: the column {name!r} has {each[place]:g} in item {before + place + 1}, too large for float32",
                code=CODE,
            )
    return np.stack(list(columns.values()), axis=1)


def is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more
