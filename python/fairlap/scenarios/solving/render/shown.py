"""A race of solvers in words."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.render.scenario_side import RenderSide
from fairlap.results.row import Row

_ABOUT = (
    "Ranked by the time to the error, between the two tolerances around it. Other times, memory and energy are of "
    "a solve at a relative tolerance of 1e-6."
)


class SolvingShown(RenderSide):
    def notes(self, rows: Sequence[Row]) -> list[str]:
        return [_ABOUT] if any(row.mode in ("solve", "solve-grad") for row in rows) else []
