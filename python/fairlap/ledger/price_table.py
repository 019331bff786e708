"""The user's own table of prices: what an hour of an instance or a device costs, in what currency, and when."""

from __future__ import annotations

import datetime
import difflib
import math
from pathlib import Path
from typing import Annotated

import msgspec

from fairlap.errors import WrongRequest
from fairlap.ledger.prices import Price, price_given
from fairlap.toml_files import TomlFile
from fairlap.user_folders import user_settings

EXAMPLE = """[[price]]
name = "my-instance"
per_hour = 0.50
currency = "USD"
dated = 2026-01-31
"""


class PriceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``dated`` is the day on which the price held."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    per_hour: Annotated[float, msgspec.Meta(gt=0)]
    currency: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{3}$", description='Three capital letters, such as "EUR".')]
    dated: datetime.date

    def price(self) -> Price:
        return Price(self.per_hour, self.currency, self.name, self.dated.isoformat())


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    price: list[PriceEntry] = []


def prices_file() -> Path:
    return user_settings() / "prices.toml"


def known_prices() -> list[PriceEntry]:
    """In the table's order; none when there is no table."""
    path = prices_file()
    if not path.exists():
        return []
    file = TomlFile(path, "the table of prices")
    entries = file.read(PriceTable).price
    names: set[str] = set()
    for place, entry in enumerate(entries):
        if not math.isfinite(entry.per_hour):
            raise file.wrong(("price", place, "per_hour"), "it must be finite")
        if entry.name in names:
            raise file.wrong(("price", place, "name"), f"{entry.name} has a price already")
        names.add(entry.name)
    return entries


def price_named(text: str) -> Price:
    """A name out of the table, or an amount such as ``1.212/h``."""
    try:
        return price_given(text)
    except WrongRequest:
        entries = {entry.name: entry for entry in known_prices()}
    if text in entries:
        return entries[text].price()
    near = difflib.get_close_matches(text, entries, n=1)
    told = f"did you mean {near[0]}?" if near else f"names stand in {prices_file()}"
    raise WrongRequest(f"there is no price {text!r}; write an amount as 1.212/h or 1.10EUR/h, or a name; {told}")
