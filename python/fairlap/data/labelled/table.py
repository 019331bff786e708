"""The columns of a table as features and labels.

Text labels are classes. Whole numbers with few different values are classes too, and other numbers are values.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.data.labelled.items import CODE, Items, items_with_classes, items_with_values
from fairlap.errors import InvalidRequest

Column = npt.NDArray[Any]  # float64 or text

MOST_NUMBERED_CLASSES = 20
_MOST_LISTED = 10


def items_of_table(path: Path, columns: Mapping[str, Column], labels: str) -> Items:
    """``labels`` is a column, the last one if it is empty. Numbers that are missing are NaN and refused."""
    column = labels or list(columns)[-1]
    if column not in columns:
        raise InvalidRequest(f"{path} has no column {labels!r}; it has {_listed(list(columns))}", code=CODE)
    if len(columns) == 1:
        raise InvalidRequest(f"{path} has one column only; features and a label are needed", code=CODE)
    found = columns[column]
    inputs = {"features": _features(path, {name: each for name, each in columns.items() if name != column}, column)}
    where = f"{path}, column {column}"
    if found.dtype.kind != "f":
        return items_with_classes(inputs, found, where)
    if np.isfinite(found).all() and (found == np.round(found)).all():
        numbers = np.unique(found)
        if len(numbers) <= MOST_NUMBERED_CLASSES:
            names = [f"{number:.0f}" for number in numbers]
            return items_with_classes(inputs, np.searchsorted(numbers, found), where, names)
    return items_with_values(inputs, found, where)


def _features(path: Path, columns: Mapping[str, Column], label: str) -> Column:
    for name, each in columns.items():
        if each.dtype.kind != "f":
            place = next(number for number, cell in enumerate(each) if not is_number(cell))
            raise InvalidRequest(
                f"{path}: the column {name!r} has text, such as {str(each[place])[:40]!r} in item {place + 1}; "
                f"features are numbers. The labels are in {label!r}; FILE:COLUMN names another column",
                code=CODE,
            )
        if not (np.abs(each) <= np.finfo(np.float32).max).all():
            place = int(np.argmax(np.abs(each)))
            raise InvalidRequest(
                f"{path}: the column {name!r} has {each[place]:g} in item {place + 1}, too large for float32", code=CODE
            )
    return np.stack(list(columns.values()), axis=1)


def is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more
