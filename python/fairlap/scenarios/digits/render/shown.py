"""A race of digits in words."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.render.scenario_side import RenderSide
from fairlap.results.row import Row
from fairlap.scenarios.digits.scenario import is_of_digits

_ABOUT = (
    "Digits kept are those of the worst answer, digits possible those that rounding the inputs leaves to any "
    "algorithm. A contestant with too few is shown with its time and is not ranked."
)


class DigitsShown(RenderSide):
    def notes(self, rows: Sequence[Row]) -> list[str]:
        return [_ABOUT] if any(is_of_digits(row.workload) for row in rows) else []

    def beside_time(self, row: Row) -> str:
        found = row.scenario_figures.get("digits_kept") if is_of_digits(row.workload) else None
        return "" if found is None else f"{found.value:.1f} digits"
