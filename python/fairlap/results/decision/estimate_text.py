"""An estimate of any column with its interval, in the unit that the end of the column's name gives."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.results.column_definitions.estimate import Estimate

_SHARES = ("_share", "_relative", "_drop", "_score", "accuracy")


def estimate_text(column: str, found: Estimate) -> str:
    if column.endswith("_per_s"):
        return interval_text(found, "/s")
    if column.endswith("_ns"):
        return quantity_text.duration_interval(found.value, found.low, found.high)
    if column.endswith("_s"):
        low, high = (None if end is None else end * 1e9 for end in (found.low, found.high))
        return quantity_text.duration_interval(found.value * 1e9, low, high)
    if column.endswith("_bytes"):
        bounds = [quantity_text.size(end) for end in (found.low, found.high) if end is not None]
        return f"{quantity_text.size(found.value)} [{', '.join(bounds)}]" if bounds else quantity_text.size(found.value)
    for suffix, unit in (("_j", "J"), ("_w", "W"), ("_g", "g")):
        if column.endswith(suffix):
            low, high = found.low, found.high
            per_watt = column.endswith("_per_w")
            return interval_text(found) if per_watt else quantity_text.quantity(found.value, unit, low, high)
    if column.endswith(_SHARES):
        return interval_text(Estimate(*(None if x is None else 100 * x for x in _parts(found))), " %")  # type: ignore[arg-type]
    return interval_text(found)


def interval_text(found: Estimate, unit: str = "") -> str:
    middle = f"{quantity_text.number(found.value)}{unit}"
    if found.low is None or found.high is None:
        return middle
    return f"{middle} [{quantity_text.number(found.low)}, {quantity_text.number(found.high)}]"


def _parts(found: Estimate) -> tuple[float, float | None, float | None]:
    return found.value, found.low, found.high
