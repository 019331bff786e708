"""A race of simulations in words."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.bench_models.environments.environment import STEPS
from fairlap.render.scenario_side import RenderSide
from fairlap.results.row import Row

_ABOUT = (
    f"A call starts each environment of the batch and takes {STEPS} steps in it. After an episode ends, the next step "
    "starts over, ignores its action, and counts as a step."
)


class SimulatingShown(RenderSide):
    def notes(self, rows: Sequence[Row]) -> list[str]:
        return [_ABOUT] if any(row.mode == "simulate" for row in rows) else []
