"""What an hour of a machine costs. No price, no figure."""

from __future__ import annotations

import re

import msgspec

from fairlap.errors import WrongRequest

_PRICE = re.compile(r"(?P<amount>\d+(\.\d+)?)\s*(?P<currency>[A-Za-z]{3})?\s*/\s*h")
_DEFAULT_CURRENCY = "USD"
_SECONDS_PER_HOUR = 3600.0


class Price(msgspec.Struct, frozen=True):
    per_hour: float
    currency: str = _DEFAULT_CURRENCY
    source: str = ""  # where the price comes from: an instance type of the table, or the command line
    dated: str = ""  # when it held, ISO 8601; empty when unknown

    def of_seconds(self, seconds: float) -> float:
        return self.per_hour * seconds / _SECONDS_PER_HOUR


def price_given(text: str) -> Price:
    """``1.212/h`` or ``1.10 EUR/h``."""
    found = _PRICE.fullmatch(text.strip())
    if found is None or float(found["amount"]) <= 0:
        raise WrongRequest(f"{text!r} is no price; write it as 1.212/h or 1.10EUR/h")
    return Price(float(found["amount"]), (found["currency"] or _DEFAULT_CURRENCY).upper(), "the command line")
