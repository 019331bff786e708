"""The row's columns as data, read off its definition; a row flattened into them, and read back from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import inspect

from fairlap.results.column_definitions.about import About
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.row import Row

Kind = Literal["text", "whole", "number", "structure"]
_BOUNDS = ("low", "high")
_KINDS: Mapping[Kind, tuple[type[inspect.Type], ...]] = {
    "text": (inspect.StrType, inspect.LiteralType),
    "whole": (inspect.IntType,),
    "number": (inspect.FloatType,),
}


@dataclass(frozen=True)
class Column:
    """One flat column. An estimate has three: its value under its own name, and its two bounds."""

    name: str
    field: str  # the row's own name for it
    kind: Kind  # a structure is written as JSON
    nullable: bool
    about: About
    meaning: str
    read: Callable[[Row], Any]
    is_estimate: bool = False  # the value of one; its bounds are not

    @property
    def group(self) -> str:
        return self.about.group


@cache
def columns() -> tuple[Column, ...]:
    found: list[Column] = []
    for name, kind, about in _described_fields():
        found += _columns_of(name, kind, about)
    return tuple(found)


def flat(row: Row) -> dict[str, Any]:
    """By column name; structures as JSON text, absent values as None."""
    return {column.name: column.read(row) for column in columns()}


def _described_fields() -> Iterator[tuple[str, inspect.Type, About]]:
    """Give the name, type and description of every field."""
    row = inspect.type_info(Row)
    assert isinstance(row, inspect.StructType)
    for each in row.fields:
        assert isinstance(each.type, inspect.Metadata)
        assert each.type.extra is not None
        yield each.name, each.type.type, each.type.extra["about"]


def _columns_of(name: str, kind: inspect.Type, about: About) -> list[Column]:
    nullable = isinstance(kind, inspect.UnionType) and kind.includes_none
    if isinstance(kind, inspect.UnionType):
        [kind] = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    if isinstance(kind, inspect.StructType) and kind.cls is Estimate:
        meanings = {end: f"{about.meaning} The {end} end of its interval." for end in _BOUNDS}
        return [
            Column(name, name, "number", nullable, about, about.meaning, _bound(name, "value"), is_estimate=True),
            *(
                Column(f"{name}_{end}", name, "number", True, about, meanings[end], _bound(name, end))
                for end in _BOUNDS
            ),
        ]
    flat_kind = next((own for own, types in _KINDS.items() if isinstance(kind, types)), None)
    read = _as_json(name) if flat_kind is None else attrgetter(name)
    return [Column(name, name, flat_kind or "structure", nullable, about, about.meaning, read)]


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
