"""How a column of the row describes itself: its meaning, unit and group, and where it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, get_type_hints

import msgspec

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Gauge(msgspec.Struct, frozen=True):
    """As monitoring reads a column, in Prometheus's base unit; its name is without the unit."""

    name: str
    unit: str
    help: str
    scale: float = 1.0  # from the unit of the column
    also: tuple[str, ...] = ()  # columns that are labels of its samples, besides those of all


class About(msgspec.Struct, frozen=True):
    meaning: str
    group: str
    unit: str = ""  # where the end of the name does not give it
    is_money: bool = False  # in the currency of the row
    gauge: Gauge | None = None
    across: str | None = None  # of a scenario's, heading in tables of several runs; empty: in their files alone


def about(
    meaning: str,
    group: str,
    *,
    unit: str = "",
    is_money: bool = False,
    gauge: Gauge | None = None,
    across: str | None = None,
) -> msgspec.Meta:
    described = About(meaning, group, "the currency" if is_money else unit, is_money, gauge, across)
    return msgspec.Meta(description=meaning, extra={"about": described})


class ScenarioColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of one scenario, as its folder defines them; every row has them."""


def with_columns(base: type[_Struct], added: Iterable[type[ScenarioColumns]]) -> type[_Struct]:
    """Make a struct that has these columns too, after its own."""
    for columns in added:
        fields: list[tuple[str, Any]] = list(get_type_hints(columns, include_extras=True).items())
        base = msgspec.defstruct(columns.__name__, fields, bases=(base,), frozen=True, kw_only=True)  # type: ignore[assignment]
    return base
