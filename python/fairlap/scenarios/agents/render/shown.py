"""Learning to act in words."""

from __future__ import annotations

from collections.abc import Sequence

from fairlap.models.modes import MODES
from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import RenderSide, Words, number_word
from fairlap.results.row import Row

_ABOUT = (
    "A score is the mean return of greedy actions over the largest return there is; a step is one of an environment. "
    "A call is one update of the agent."
)


class AgentsShown(RenderSide):
    def words(self, plan: Plan) -> Words:
        return (
            []
            if plan.to_score is None
            else ["--to-score", number_word(plan.to_score), "--epochs", str(plan.most_epochs)]
        )

    def notes(self, rows: Sequence[Row]) -> list[str]:
        return [_ABOUT] if any(MODES[row.mode].acts for row in rows) else []
