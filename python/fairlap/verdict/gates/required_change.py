"""A bound on how much a quantity may change against the baseline: ``memory_peak<=+2%``.

By the rule of the gate: the interval of the ratio is compared with the bound. The interval is closed, so a ratio that
touches the bound meets ``<=`` and not ``<``: memory that is the same to the byte in every block meets ``<=+0%``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from fairlap.errors import InvalidRequest
from fairlap.verdict.exact_tests.signed_rank import ROUNDING
from fairlap.verdict.gates.slowdown import Slowdown

E_REQUIRE = "E_REQUIRE"
Operator = Literal["<", "<=", ">", ">="]
_FORM = re.compile(r"\s*(?P<quantity>[A-Za-z_]\w*)\s*(?P<operator><=|>=|<|>)\s*(?P<limit>[^<>=]*?)\s*")
_CHANGE = re.compile(r"[+-]\d+(\.\d+)?%?")
_MOST_CHANGE = 1000.0


@dataclass(frozen=True)
class RequiredChange:
    """``change`` is a share: 0.02 where the quantity may be 1.02 times that of the baseline."""

    text: str
    quantity: str  # by its key
    operator: Operator
    change: float

    @property
    def bound(self) -> float:
        return 1 + self.change

    def outcome(self, low: float, high: float) -> Slowdown:
        """Of the closed interval of how many times that of the baseline it is."""
        if self.operator in (">", ">="):
            low, high, bound = -high, -low, -self.bound
        else:
            bound = self.bound
        above, below = bound + ROUNDING * self.bound, bound - ROUNDING * self.bound
        if self.operator in ("<=", ">="):
            return Slowdown.EXCEEDED if low > above else Slowdown.WITHIN if high <= above else Slowdown.UNDECIDED
        return Slowdown.EXCEEDED if low >= below else Slowdown.WITHIN if high < below else Slowdown.UNDECIDED


def required_changes_of(texts: Iterable[str], where: str = "--require") -> tuple[RequiredChange, ...]:
    """Parse each, or several with commas between them; ``where`` is what a message calls their source."""
    found = tuple(_required_change(part.strip(), where) for text in texts for part in text.split(","))
    require_once(found, where)
    return found


def require_once(required: Sequence[RequiredChange], where: str = "--require") -> None:
    """Refuse two bounds on one side of a quantity."""
    keys = [(each.quantity, each.operator[0]) for each in required]
    if twice := next((each.text for each in required if keys.count((each.quantity, each.operator[0])) > 1), ""):
        raise InvalidRequest(f"{where}: {twice!r} and another one bound the same quantity; keep one", code=E_REQUIRE)


def _required_change(text: str, where: str) -> RequiredChange:
    match = _FORM.fullmatch(text)
    if match is None or not _CHANGE.fullmatch(match["limit"]):
        hint = "" if match is None else f"; {match['limit']!r} is not a change such as +2% or -5%"
        raise InvalidRequest(
            f"{where}: {text!r} is not a quantity with <, <=, > or >= and a change from the baseline, such as "
            f"memory_peak<=+2%{hint}",
            code=E_REQUIRE,
        )
    number = match["limit"]
    is_percent = number.endswith("%")
    change = float(number.removesuffix("%")) / (100 if is_percent else 1)
    if not -1 < change <= (_MOST_CHANGE if is_percent else 1):
        meant = f"; write {number}%" if not is_percent else ""
        wrong = f"{where}: {text!r}: {number} is not a change above -100%, such as +2%{meant}"
        raise InvalidRequest(wrong, code=E_REQUIRE)
    return RequiredChange(text, match["quantity"], match["operator"], change)  # type: ignore[arg-type]


def changes_among(
    text: str, can_be_below_0: Callable[[str], bool] = lambda name: False
) -> tuple[tuple[RequiredChange, ...], str]:
    """Separate bounds on changes, ``memory_peak<=+2%``, from limits on figures, ``latency_p99<20ms``, of one list.

    ``can_be_below_0`` names figures whose limit may have a sign, such as a correlation.
    """
    parts = text.split(",")
    changes = [part for part in parts if _is_of_a_change(part, can_be_below_0)]
    return required_changes_of(changes), ",".join(part for part in parts if part not in changes)


def _is_of_a_change(text: str, can_be_below_0: Callable[[str], bool]) -> bool:
    match = _FORM.fullmatch(text)
    if match is None or match["limit"][:1] not in ("+", "-"):
        return False
    return match["limit"][0] == "+" or not can_be_below_0(match["quantity"])
