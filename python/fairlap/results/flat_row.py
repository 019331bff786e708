"""The row's columns as data, read off its definition; a row flattened into them, and read back from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import inspect

from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row

Kind = Literal["text", "whole", "number", "structure"]
_BOUNDS = ("low", "high")


@dataclass(frozen=True)
class Column:
    """One flat column. An estimate has three: its value under its own name, and its two bounds."""

    name: str
    field: str  # the row's own name for it
    kind: Kind  # a structure is written as JSON
    nullable: bool
    group: str
    meaning: str
    read: Callable[[Row], Any]
    is_estimate: bool = False  # the value of one; its bounds are not


@cache
def columns() -> tuple[Column, ...]:
    found: list[Column] = []
    for each in _described_fields():
        found += _columns_of(*each)
    return tuple(found)


def flat(row: Row) -> dict[str, Any]:
    """By column name; structures as JSON text, absent values as None."""
    return {column.name: column.read(row) for column in columns()}


def _described_fields() -> list[tuple[str, inspect.Type, str, str]]:
    """Every field's name, type, group and meaning."""
    row = inspect.type_info(Row)
    assert isinstance(row, inspect.StructType)
    found = []
    for each in row.fields:
        assert isinstance(each.type, inspect.Metadata)
        schema = each.type.extra_json_schema or {}
        found.append((each.name, each.type.type, (each.type.extra or {})["group"], schema["description"]))
    return found


def _columns_of(name: str, kind: inspect.Type, group: str, meaning: str) -> list[Column]:
    nullable = isinstance(kind, inspect.UnionType) and kind.includes_none
    if isinstance(kind, inspect.UnionType):
        [kind] = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    if isinstance(kind, inspect.StructType) and kind.cls is Estimate:
        bounds = [
            Column(
                f"{name}_{end}",
                name,
                "number",
                True,
                group,
                f"{meaning} The {end} end of its interval.",
                _bound(name, end),
            )
            for end in _BOUNDS
        ]
        return [Column(name, name, "number", nullable, group, meaning, _bound(name, "value"), True), *bounds]
    if isinstance(kind, inspect.StrType | inspect.LiteralType):
        return [Column(name, name, "text", nullable, group, meaning, _value(name))]
    if isinstance(kind, inspect.IntType):
        return [Column(name, name, "whole", nullable, group, meaning, _value(name))]
    if isinstance(kind, inspect.FloatType):
        return [Column(name, name, "number", nullable, group, meaning, _value(name))]
    return [Column(name, name, "structure", nullable, group, meaning, _as_json(name))]


def _value(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row, name)


def _bound(name: str, end: str) -> Callable[[Row], Any]:
    return lambda row: getattr(getattr(row, name), end, None)


def _as_json(name: str) -> Callable[[Row], str]:
    return lambda row: msgspec.json.encode(getattr(row, name)).decode()


def require_header(names: Iterable[str]) -> None:
    """Require the columns of this version of the row, in any order; one that can be absent may be left out."""
    found, wanted = list(names), {column.name for column in columns()}
    needed = {column.name for column in columns() if not can_be_absent(column)}
    missing, unknown = sorted(needed - set(found)), sorted(set(found) - wanted)
    if missing:
        raise ValueError(f"missing columns: {', '.join(missing)}")
    if unknown:
        raise ValueError(f"unknown columns: {', '.join(unknown)}")
    if len(found) > len(set(found)):
        raise ValueError("a column appears twice")


def can_be_absent(column: Column) -> bool:
    return column.nullable or column.name != column.field  # the bounds of an estimate go with it


def columns_with_values(rows: Sequence[Row]) -> list[Column]:
    """Leave out the columns that are absent in every row, for the reasons in its column ``absent``."""
    if not rows:
        return list(columns())
    return [column for column in columns() if not all(column.field in row.absent for row in rows)]


def row_of_cells(cells: Mapping[str, Any]) -> Row:
    """Invert ``flat``; some formats cannot tell an absent text from an empty one, so ``absent`` decides."""
    absent: dict[str, str] = msgspec.json.decode(cells["absent"], type=dict[str, str])
    found: dict[str, Any] = {}
    for column in columns():
        if column.name not in cells and column.field not in absent:
            raise ValueError(f"missing columns: {column.name}")
        value: Any = cells.get(column.name)
        if column.name != column.field:  # a bound: its estimate comes before it
            if isinstance(found[column.field], dict):
                found[column.field][column.name.removeprefix(f"{column.field}_")] = value
        elif column.field in absent:
            found[column.field] = None
        elif column.kind == "structure":
            found[column.field] = msgspec.json.decode(value)
        else:
            found[column.field] = {"value": value} if column.is_estimate else value
    return msgspec.convert(found, type=Row)
