"""The price of an hour of a machine, and the user's table of prices: amount, currency, date."""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path
from typing import Annotated

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.files.user_folders import user_settings
from fairlap.request.toml_file import read_toml
from fairlap.suggestions import did_you_mean

_PRICE = re.compile(r"(?P<amount>\d+(\.\d+)?)\s*(?P<currency>[A-Za-z]{3})?\s*/\s*h")
_DEFAULT_CURRENCY = "USD"
_SECONDS_PER_HOUR = 3600.0
_NS_PER_S = 1e9


class Price(msgspec.Struct, frozen=True):
    per_hour: float
    currency: str = _DEFAULT_CURRENCY
    source: str = ""  # where the price comes from: an instance type of the table, or the command line
    dated: str = ""  # when it was valid, ISO 8601; empty when unknown

    def of_seconds(self, seconds: float) -> float:
        return self.per_hour * seconds / _SECONDS_PER_HOUR

    def of_1000_items_per_ns(self, batch: int) -> float:
        """Compute what 1000 items cost for each nanosecond of a call, on a machine that runs nothing else."""
        return self.of_seconds(1000 / batch / _NS_PER_S)


def price_given(text: str) -> Price:
    """``1.212/h`` or ``1.10 EUR/h``."""
    found = _PRICE.fullmatch(text.strip())
    if found is None or float(found["amount"]) <= 0:
        raise InvalidRequest(f"{text!r} is not a price; write it as 1.212/h or 1.10EUR/h")
    return Price(float(found["amount"]), (found["currency"] or _DEFAULT_CURRENCY).upper(), "the command line")


EXAMPLE = """[[price]]
name = "my-instance"
per_hour = 0.50
currency = "USD"
dated = 2026-01-31
"""


class PriceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``dated`` is the day on which the price was valid."""

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
    entries = read_toml(path, PriceTable, "the table of prices").price
    names: set[str] = set()
    for place, entry in enumerate(entries):
        if not math.isfinite(entry.per_hour):
            raise InvalidRequest(f"{path}: price[{place}].per_hour must be finite")
        if entry.name in names:
            raise InvalidRequest(f"{path}: price[{place}].name: {entry.name} is given twice")
        names.add(entry.name)
    return entries


def price_named(text: str) -> Price:
    """Find a name out of the table, or parse an amount such as ``1.212/h``."""
    try:
        return price_given(text)
    except InvalidRequest:
        entries = {entry.name: entry for entry in known_prices()}
    if text in entries:
        return entries[text].price()
    hint = did_you_mean(text, entries)
    if not hint and entries:
        hint = f"the names are in {prices_file()}"
    elif not hint:
        missing = "has no entries" if prices_file().exists() else "does not exist"
        hint = f"the table of prices, {prices_file()}, {missing}; `fairlap list prices` shows how to write one"
    raise InvalidRequest(
        f"{text!r} is neither an amount such as 1.212/h or 1.10EUR/h nor the name of a price; {hint}", code="E_PRICE"
    )
